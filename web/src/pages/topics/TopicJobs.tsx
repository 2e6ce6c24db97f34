import { Button, Checkbox, Group } from '@mantine/core';
import { infiniteQueryOptions, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api, inProduct } from '../../api/client';
import { keys } from '../../api/queries';
import type { components } from '../../api/schema';
import type { Topic } from '../../api/types';
import { TOPIC_JOB_STATE, type TopicJobState } from '../../api/vocabulary';
import { useKeys, useRowKeys } from '../../app/keys';
import { useMay } from '../../session/useSession';
import { CommandLine } from '../../ui/CommandLine';
import { ActionButton } from '../../ui/Confirm';
import { toggled } from '../../ui/filter';
import { count, plural, shellWord } from '../../ui/format';
import { Empty, Loading, ProblemAlert } from '../../ui/States';
import { listed, parseExact } from './payload';
import { TopicJobRow } from './TopicJobRow';
import classes from './TopicJobs.module.css';
import { topicCommand } from './TopicSwitch';

export function TopicJobs({ topic, state }: { topic: Topic; state: TopicJobState }) {
  const query = useInfiniteQuery(topicJobsQuery(topic.productId, topic.name, state));
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const mayRetry = useMay('operator');
  const closeAll = () => setOpen(new Set());
  useRowKeys();
  useKeys({ Escape: closeAll });
  if (!query.data) {
    return query.isError ? (
      <ProblemAlert error={query.error} retry={() => void query.refetch()} />
    ) : (
      <Loading what="jobs" />
    );
  }
  const jobs = query.data.pages.flatMap((page) => page.jobs);
  const picks = state === 'dead' && mayRetry;
  const picked = jobs.filter((job) => chosen.has(job.id)).map((job) => job.id);
  const command = topicCommand(
    state === 'dead' ? 'dead' : 'jobs',
    topic,
    state === 'dead' ? '' : ` --state ${state}`,
  );
  return (
    <>
      {state === 'dead' && jobs.length > 0 && (
        <Group gap="xs" mb="xs">
          {picks && (
            <Checkbox
              size="xs"
              label="Select all shown"
              checked={picked.length === jobs.length}
              indeterminate={picked.length > 0 && picked.length < jobs.length}
              onChange={(event) =>
                setChosen(event.currentTarget.checked ? new Set(jobs.map((job) => job.id)) : new Set())
              }
            />
          )}
          <RetryButton topic={topic} ids={picked} done={() => setChosen(new Set())} />
        </Group>
      )}
      {jobs.length === 0 ? (
        <Empty title={TOPIC_JOB_STATE[state].none}>
          {state === 'ready' && 'Add a job with the form below or from a terminal.'}
          {state === 'dead' &&
            'A job is dead when its retries are exhausted. It stays here until somebody retries it.'}
        </Empty>
      ) : (
        <ul className={classes.list} aria-label={`${TOPIC_JOB_STATE[state].label} jobs`}>
          {jobs.map((job) => (
            <TopicJobRow
              key={job.id}
              job={job}
              open={open.has(job.id)}
              onToggle={() => setOpen(toggled(open, job.id))}
              chosen={picks ? chosen.has(job.id) : undefined}
              onChoose={() => setChosen(toggled(chosen, job.id))}
            />
          ))}
        </ul>
      )}
      <Group mt="xs" justify="space-between">
        <CommandLine command={command} />
        {query.hasNextPage && (
          <Button
            size="xs"
            variant="default"
            loading={query.isFetchingNextPage}
            onClick={() => void query.fetchNextPage()}
          >
            Show more
          </Button>
        )}
        {(query.data.pages.length ?? 0) > 2 && (
          <Button size="xs" variant="subtle" loading={query.isFetching} onClick={() => void query.refetch()}>
            {plural(jobs.length, 'job')} shown, refresh
          </Button>
        )}
      </Group>
    </>
  );
}

function RetryButton({ topic, ids, done }: { topic: Topic; ids: string[]; done: () => void }) {
  const client = useQueryClient();
  const { name, productId } = topic;
  const some = ids.length > 0;
  const dead = topic.byState.dead ?? 0;
  const retry = async () => {
    await answer(
      api.POST('/api/fleet/topics/{name}/retry', {
        params: { path: { name }, header: inProduct(productId) },
        body: some ? { jobs: ids } : {},
      }),
    );
    done();
    await client.invalidateQueries({ queryKey: keys.topics });
  };
  return (
    <ActionButton
      label={some ? `Retry ${count(ids.length)}…` : 'Retry all dead…'}
      role="operator"
      run={retry}
      done="The jobs are ready again"
      command={topicCommand('retry', topic, ids.map((id) => ` ${shellWord(id)}`).join(''))}
      confirm={{
        title: some
          ? `Retry ${plural(ids.length, 'dead job')} of ${name}?`
          : `Retry all ${count(dead)} dead jobs of ${name}?`,
        text: 'Their attempts start over. If the cause is not fixed, they will fail again.',
        yes: 'Retry',
      }}
    />
  );
}

type TopicJobPage = components['schemas']['TopicJobPage'];

const PAGE = '50';

/// Jobs of a topic in one state, newest first. Topic jobs have no events, so the first pages are looked at often; of a
/// long list that somebody reads, only when they ask.
export const topicJobsQuery = (product: string, name: string, state: TopicJobState) =>
  infiniteQueryOptions({
    queryKey: [...keys.topics, product, name, state],
    queryFn: async ({ signal, pageParam }) => {
      const text = await answer(
        api.GET('/api/fleet/topics/{name}/jobs', {
          params: {
            path: { name },
            query: { state, limit: PAGE, ...(pageParam ? { cursor: pageParam } : {}) },
            header: inProduct(product),
          },
          parseAs: 'text',
          signal,
        }),
      );
      const page = parseExact(text) as TopicJobPage;
      return { jobs: page.jobs.map(listed), nextCursor: page.nextCursor };
    },
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor ?? undefined,
    refetchInterval: (query) => ((query.state.data?.pages.length ?? 0) <= 2 ? 3_000 : false),
  });

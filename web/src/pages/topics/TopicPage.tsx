import { Group, Stack, Text } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useParams, useSearch } from '@tanstack/react-router';
import { topicsQuery } from '../../api/queries';
import type { Topic } from '../../api/types';
import { TOPIC_JOB_STATE, wordsOf } from '../../api/vocabulary';
import { useTitle } from '../../app/title';
import { PageTitle } from '../../ui/Basics';
import { CommandLine } from '../../ui/CommandLine';
import { count, plural } from '../../ui/format';
import { AnchorLink } from '../../ui/links';
import { Panel } from '../../ui/Panel';
import { Loaded } from '../../ui/States';
import { EnqueueForm } from './EnqueueForm';
import { TopicJobs, topicJobsQuery } from './TopicJobs';
import { TopicStatus, TopicSwitch, topicCommand } from './TopicSwitch';
import classes from './Topics.module.css';

export function TopicPage() {
  const { product, name } = useParams({ from: '/topics/$product/$name' });
  const { state = 'ready' } = useSearch({ from: '/topics/$product/$name' });
  const topics = useQuery(topicsQuery());
  // Fetched below, by the list of its jobs: an invalid name is refused there.
  const { isLoadingError } = useInfiniteQuery({ ...topicJobsQuery(product, name, state), enabled: false });
  useTitle(`${name} topic`);
  return (
    <Stack gap="md">
      <Loaded query={topics} what="topic">
        {(list) => {
          const known = list.topics.find((each) => each.productId === product && each.name === name);
          const refused = !known && isLoadingError;
          const empty = { productId: product, name, byState: {}, workers: 0, inFlight: 0 };
          const topic: Topic = known ?? empty;
          return (
            <>
              <Group justify="space-between">
                <div>
                  <AnchorLink to="/topics" size="xs">
                    Topics
                  </AnchorLink>
                  <PageTitle>
                    <span className={classes.dim}>{product} / </span>
                    {name}
                  </PageTitle>
                  {!refused && (
                    <Text size="sm" component="p" m={0}>
                      <TopicStatus topic={topic} allPaused={Boolean(list.paused)} /> ·{' '}
                      {plural(topic.workers, 'worker')} connected to this coordinator ·{' '}
                      {count(topic.inFlight)} in flight
                    </Text>
                  )}
                </div>
                {!refused && (
                  <Group gap="xs">
                    <CommandLine command={topicCommand('show', topic)} />
                    <TopicSwitch topic={topic} />
                  </Group>
                )}
              </Group>
              <Panel title="Jobs">
                <nav className={classes.states} aria-label="Jobs by state">
                  {wordsOf(TOPIC_JOB_STATE).map((each) => (
                    <Link
                      key={each}
                      to="/topics/$product/$name"
                      params={{ product, name }}
                      search={{ state: each }}
                      replace
                      className={classes.stateLink}
                      aria-current={each === state ? 'page' : undefined}
                      data-tone={(topic.byState[each] ?? 0) > 0 ? TOPIC_JOB_STATE[each].tone : undefined}
                    >
                      {TOPIC_JOB_STATE[each].label} <b>{count(topic.byState[each] ?? 0)}</b>
                    </Link>
                  ))}
                </nav>
                <TopicJobs key={`${product}/${name}/${state}`} topic={topic} state={state} />
              </Panel>
              {!refused && <EnqueueForm key={`${product}/${name}`} product={product} topic={name} />}
            </>
          );
        }}
      </Loaded>
    </Stack>
  );
}

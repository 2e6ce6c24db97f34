import { Text } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { answer, api } from '../../api/client';
import { Problem } from '../../api/problem';
import { dagQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { withRetry } from '../../app/loadChunk';
import { CommandLine } from '../../ui/CommandLine';
import { AnchorLink } from '../../ui/links';
import { Panel } from '../../ui/Panel';
import { Loaded, Loading } from '../../ui/States';
import { visible } from '../../ui/visible';

const JobGraph = lazy(
  withRetry(() => import('../../ui/Graph').then((module) => ({ default: module.JobGraph }))),
);

/// Deeper than anybody nests; stops a loop in the data.
const DEEPEST = 20;

/// The root of the graph, as far up as this token can see.
const rootQuery = (job: Job) =>
  queryOptions({
    queryKey: ['root', job.id],
    queryFn: async ({ signal }): Promise<{ id: string; name: string }> => {
      let top: Pick<Job, 'id' | 'name' | 'parentId'> = job;
      for (let step = 0; top.parentId && step < DEEPEST; step += 1) {
        const id = top.parentId;
        try {
          top = await answer(api.GET('/api/fleet/jobs/{id}', { params: { path: { id } }, signal }));
        } catch (error) {
          if (Problem.from(error).code !== 'not_found') throw error;
          break;
        }
      }
      return { id: top.id, name: top.name };
    },
    // Parents never change.
    staleTime: Number.POSITIVE_INFINITY,
  });

/// The whole graph that the job belongs to, from its root.
export function GraphTab({ job }: { job: Job }) {
  const root = useQuery(rootQuery(job));
  return (
    <Panel title="Graph" aside={<CommandLine command={`giga dag ${root.data?.id ?? job.id}`} />}>
      {root.data && root.data.id !== job.id && (
        <Text size="sm" mb="xs">
          The graph of{' '}
          <AnchorLink to="/jobs/$id" params={{ id: root.data.id }} search={{ tab: 'graph' }}>
            {visible(root.data.name)}
          </AnchorLink>
          , with this job marked.
        </Text>
      )}
      <Loaded query={root} what="graph">
        {({ id }) => <Drawn id={id} selected={job.id} />}
      </Loaded>
    </Panel>
  );
}

function Drawn({ id, selected }: { id: string; selected: string }) {
  const query = useQuery(dagQuery(id));
  return (
    <Loaded query={query} what="graph">
      {(dag) => (
        <Suspense fallback={<Loading what="graph" />}>
          <JobGraph dag={dag} selected={selected} />
        </Suspense>
      )}
    </Loaded>
  );
}

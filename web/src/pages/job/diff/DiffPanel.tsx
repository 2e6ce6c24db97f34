import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { artifactsQuery } from '../../../api/queries';
import type { Job, Run } from '../../../api/types';
import { Empty, Loaded } from '../../../ui/States';
import { artifactTextQuery } from '../files/artifactText';
import { DiffView } from './DiffView';
import { parseDiff } from './parseDiff';

/// What the factory calls the file with a run's changes.
const CHANGES = 'changes.diff';

/// What a run changed, as the factory that ran it handed it over.
export function DiffPanel({ job, run }: { job: Job; run: Run | undefined }) {
  const artifacts = useQuery(artifactsQuery(job.id));
  return (
    <Loaded query={artifacts} what="files">
      {(list) => {
        const file = list.artifacts.find((one) => one.name === CHANGES && one.leaseEpoch === run?.leaseEpoch);
        return file ? <Changes artifactId={file.id} /> : <NoChanges job={job} run={run} />;
      }}
    </Loaded>
  );
}

function Changes({ artifactId }: { artifactId: string }) {
  const query = useQuery(artifactTextQuery(artifactId));
  return (
    <Loaded query={query} what="changes">
      {(text) => <Parsed text={text} />}
    </Loaded>
  );
}

function Parsed({ text }: { text: string }) {
  const diff = useMemo(() => parseDiff(text), [text]);
  return <DiffView diff={diff} />;
}

function NoChanges({ job, run }: { job: Job; run: Run | undefined }) {
  if (!run)
    return (
      <Empty title="No run yet">The changes of a run appear here when it has handed its work over.</Empty>
    );
  if (run.outcome === 'running') {
    return <Empty title="The run goes on">Its changes appear here when it has handed its work over.</Empty>;
  }
  return (
    <Empty title={`Run ${run.leaseEpoch} left no changes`}>
      {job.repo ? (
        <>
          Only a run that succeeded hands its changes over.
          {run.report.branch && (
            <Text size="sm">
              Its branch is <code>{run.report.branch}</code>.
            </Text>
          )}
        </>
      ) : (
        'The job has no repository: there is nothing to change.'
      )}
    </Empty>
  );
}

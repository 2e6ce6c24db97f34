import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { artifactsQuery, artifactTextQuery } from '../../../api/queries';
import type { Job, Run } from '../../../api/types';
import { plural } from '../../../ui/format';
import { Empty, Loaded } from '../../../ui/States';
import { visible } from '../../../ui/visible';
import { DiffView } from './DiffView';

/// The file with a run's changes.
const CHANGES = 'changes.diff';

interface DiffPanelProps {
  job: Job;
  run: Run;
}

/// What a run changed, as its factory uploaded it.
export function DiffPanel({ job, run }: DiffPanelProps) {
  const artifacts = useQuery(artifactsQuery(job.id));
  return (
    <Loaded query={artifacts} what="files">
      {(list) => {
        const file = list.artifacts.find((one) => one.name === CHANGES && one.leaseEpoch === run.leaseEpoch);
        return file ? (
          <Changes artifactId={file.id} job={job} run={run} />
        ) : (
          <NoChanges job={job} run={run} />
        );
      }}
    </Loaded>
  );
}

function Changes({ artifactId, job, run }: DiffPanelProps & { artifactId: string }) {
  const query = useQuery(artifactTextQuery(artifactId));
  return (
    <Loaded query={query} what="changes">
      {(text) =>
        text.trim() === '' && run.report.filesChanged ? (
          <NoChanges job={job} run={run} />
        ) : (
          <DiffView text={text} />
        )
      }
    </Loaded>
  );
}

function NoChanges({ job, run }: DiffPanelProps) {
  const { branch, filesChanged } = run.report;
  if (run.outcome === 'running') {
    return <Empty title="Still running">The changes appear here when the run has finished.</Empty>;
  }
  if (filesChanged) {
    return (
      <Empty title={`The diff of run ${run.leaseEpoch} is not available`}>
        It changed {plural(filesChanged, 'file')}
        {branch ? (
          <>
            ; see the branch <code>{visible(branch)}</code>.
          </>
        ) : (
          ', and reported no branch.'
        )}
      </Empty>
    );
  }
  return (
    <Empty title={`Run ${run.leaseEpoch} has no changes`}>
      {job.repo ? (
        <>
          Only successful runs upload their changes.
          {branch && (
            <Text size="sm">
              Its branch is <code>{visible(branch)}</code>.
            </Text>
          )}
        </>
      ) : (
        'The job has no repository, so there is nothing to change.'
      )}
    </Empty>
  );
}

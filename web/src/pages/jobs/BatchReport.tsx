import { Alert, List } from '@mantine/core';
import { plural } from '../../ui/format';
import { AnchorLink } from '../../ui/links';
import { visible } from '../../ui/visible';
import { ACTIONS, type JobActionName } from './actions';
import type { Outcome } from './batch';

export interface Report {
  action: JobActionName;
  outcome: Outcome;
}

/// What a batch could not do, job by job. What it did the rows show.
export function BatchReport({ report, close }: { report: Report; close(): void }) {
  const { done, failed, left } = report.outcome;
  const all = done.length + failed.length + left.length;
  return (
    <Alert
      color="red"
      mb="sm"
      role="alert"
      withCloseButton
      onClose={close}
      closeButtonLabel="Close this report"
      title={`${ACTIONS[report.action].label}: ${done.length} of ${plural(all, 'job')} done`}
    >
      <List size="sm">
        {failed.map(({ job, why }) => (
          <List.Item key={job.id}>
            <AnchorLink size="sm" to="/jobs/$id" params={{ id: job.id }}>
              {visible(job.name)}
            </AnchorLink>
            : {why}
          </List.Item>
        ))}
        {left.length > 0 && <List.Item>{plural(left.length, 'job')} not tried: it was stopped</List.Item>}
      </List>
    </Alert>
  );
}

import { Button } from '@mantine/core';
import { plural } from '../../ui/format';
import { isAny, type Waiting } from './useJobList';

/// That there are new jobs, which push nothing around until somebody asks for them.
export function NewPill({ waiting, show }: { waiting: Waiting; show(): void }) {
  if (!isAny(waiting)) return null;
  return (
    <Button size="xs" radius="xl" onClick={show}>
      {said(waiting)}
    </Button>
  );
}

function said({ jobs, many }: Waiting): string {
  if (many) return 'Many new jobs, show';
  return jobs.length > 0 ? `${plural(jobs.length, 'new job')}, show` : 'There may be more jobs, reload';
}

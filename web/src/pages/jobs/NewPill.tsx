import { Button } from '@mantine/core';
import { plural } from '../../ui/format';
import type { Waiting } from './useJobList';

/// That there are new jobs, which push nothing around until somebody asks for them.
export function NewPill({ waiting, show }: { waiting: Waiting; show(): void }) {
  const { jobs, many } = waiting;
  if (jobs.length === 0 && !many) return null;
  return (
    <Button size="xs" radius="xl" onClick={show}>
      {many ? 'Many new jobs, show' : `${plural(jobs.length, 'new job')}, show`}
    </Button>
  );
}

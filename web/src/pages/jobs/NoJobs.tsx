import { Button, Stack } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { CommandLine } from '../../ui/CommandLine';
import { Empty } from '../../ui/States';
import { isFiltered } from './filter';
import type { JobsSearch } from './search';

interface NoJobsProps {
  search: JobsSearch;
  clear(): void;
}

/// Nothing to show, and what to do about it.
export function NoJobs({ search, clear }: NoJobsProps) {
  if (isFiltered(search)) {
    return (
      <Empty title="No job matches these filters">
        <Stack align="center">
          <span>One that does shows up here by itself.</span>
          <Button size="xs" variant="default" onClick={clear}>
            Clear all filters
          </Button>
        </Stack>
      </Empty>
    );
  }
  return (
    <Empty title="There are no jobs yet">
      <Stack align="center">
        <span>Describe what is to be done, and a factory that can do it takes it.</span>
        <Button component={Link} to="/new" size="xs">
          Make the first job
        </Button>
        <span>Or from a terminal, starting from a manifest that explains itself:</span>
        <CommandLine command="giga job init" />
        <CommandLine command="giga job submit job.md" />
      </Stack>
    </Empty>
  );
}

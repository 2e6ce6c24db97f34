// What a part of the page shows instead of its data: loading, an error, nothing there.

import { Alert, Loader, Stack, Text } from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Problem } from '../api/problem';
import { useFeedState } from '../live/LiveProvider';
import { Hint, SmallButton } from './Basics';

export function Loading({ what }: { what: string }) {
  return (
    <Stack align="center" p="lg" role="status" aria-busy>
      <Loader size="sm" aria-hidden />
      <Hint>Loading {what}</Hint>
    </Stack>
  );
}

export function ProblemAlert({ error, retry }: { error: unknown; retry?: () => void }) {
  const problem = Problem.from(error);
  return (
    <Alert
      color="red"
      title={problem.code === 'forbidden' ? 'Not allowed with this token' : 'Something went wrong'}
      role="alert"
    >
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          {problem.message}
          {retry && problem.code === 'unreachable' && '; retrying automatically'}
        </Text>
        {problem.errors.map((wrong) => (
          <Text size="sm" key={`${wrong.field}-${wrong.message}`}>
            <b>{wrong.field}</b>: {wrong.message}
          </Text>
        ))}
        {retry && <SmallButton onClick={retry}>Try again</SmallButton>}
      </Stack>
    </Alert>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <Stack align="center" gap="xs" p="xl">
      <Text fw={600}>{title}</Text>
      {children && (
        <Text size="sm" c="dimmed" component="div" ta="center">
          {children}
        </Text>
      )}
    </Stack>
  );
}

interface LoadedProps<T> {
  query: UseQueryResult<T>;
  what: string;
  children: (data: T) => ReactNode;
}

/// A line above data that could not be refreshed. When the whole connection is lost, the banner says so for all.
function Stale({ query }: { query: UseQueryResult<unknown> }) {
  const { kind } = useFeedState();
  if (!query.isError || query.data === undefined || kind === 'lost') return null;
  const since = new Date(query.dataUpdatedAt).toLocaleTimeString();
  return (
    <Text size="sm" c="var(--giga-warn)" role="status" mb={4}>
      Not updated since {since}: {Problem.from(query.error).message}
    </Text>
  );
}

/// The data, or a placeholder. Old data stays in sight when a refresh fails, and is marked as old.
export function Loaded<T>({ query, what, children }: LoadedProps<T>) {
  if (query.data !== undefined) {
    return (
      <>
        <Stale query={query} />
        {children(query.data)}
      </>
    );
  }
  if (query.isError) return <ProblemAlert error={query.error} retry={() => void query.refetch()} />;
  return <Loading what={what} />;
}

// What a part of the page shows instead of its data: that it is on its way, what went wrong, that there is none.

import { Alert, Button, Loader, Stack, Text } from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Problem } from '../api/problem';

export function Loading({ what }: { what: string }) {
  return (
    <Stack align="center" p="lg" role="status">
      <Loader size="sm" aria-hidden />
      <Text size="sm" c="dimmed">
        Loading {what}
      </Text>
    </Stack>
  );
}

export function ProblemAlert({ error, retry }: { error: unknown; retry?: () => void }) {
  const problem = Problem.from(error);
  return (
    <Alert
      color="red"
      title={problem.code === 'forbidden' ? 'Not with this token' : 'That did not work'}
      role="alert"
    >
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{problem.message}</Text>
        {problem.errors.map((wrong) => (
          <Text size="sm" key={`${wrong.field}-${wrong.message}`}>
            <b>{wrong.field}</b>: {wrong.message}
          </Text>
        ))}
        {retry && (
          <Button size="xs" variant="default" onClick={retry}>
            Try again
          </Button>
        )}
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

/// The data, or what stands for it. Old data stays in sight when a refresh fails: the banner says that it is old.
export function Loaded<T>({ query, what, children }: LoadedProps<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.isError) return <ProblemAlert error={query.error} retry={() => void query.refetch()} />;
  return <Loading what={what} />;
}

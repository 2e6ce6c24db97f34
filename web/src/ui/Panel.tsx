import { Paper, Title } from '@mantine/core';
import { type ReactNode, useId } from 'react';

/// A part of a page with a heading of its own.
export function Panel({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <Paper component="section" withBorder p="md" aria-labelledby={id}>
      <div
        style={{
          display: 'flex',
          justifyContent: 'space-between',
          alignItems: 'baseline',
          gap: 12,
          flexWrap: 'wrap',
        }}
      >
        <Title order={2} size="h5" id={id} mb="xs">
          {title}
        </Title>
        {aside}
      </div>
      {children}
    </Paper>
  );
}

import { Group, Paper, Title } from '@mantine/core';
import { type ReactNode, useId } from 'react';
import type { Tone } from '../api/vocabulary';
import { PageTitle } from './Basics';
import { CommandLine } from './CommandLine';

/// A section of a page with its own heading.
export function Panel({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <Paper component="section" withBorder p="md" aria-labelledby={id}>
      <Group justify="space-between" align="baseline" gap={12}>
        <Title order={2} size="h5" id={id} mb="xs">
          {title}
        </Title>
        {aside}
      </Group>
      {children}
    </Paper>
  );
}

/// The title of the page and its command.
export function PageHead({ title, command }: { title: string; command: string }) {
  return (
    <Group justify="space-between">
      <PageTitle>{title}</PageTitle>
      <CommandLine command={command} />
    </Group>
  );
}

interface ScrollBoxProps {
  label: string;
  className?: string;
  wrap?: boolean;
  children: ReactNode;
}

/// A box that scrolls on its own, by keyboard too.
export function ScrollBox({ label, className, wrap, children }: ScrollBoxProps) {
  return (
    <section
      className={className}
      aria-label={label}
      data-wrap={wrap || undefined}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: without it only a mouse could scroll
      tabIndex={0}
    >
      {children}
    </section>
  );
}

/// A name and its value, in a `<dl>`.
export function Fact({ name, tone, children }: { name: string; tone?: Tone; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd data-tone={tone}>{children}</dd>
    </div>
  );
}

// Mantine's parts in the sizes that this page uses most.

import { Button, type ButtonProps, SegmentedControl, Text, type TextProps, Title } from '@mantine/core';
import type { ComponentProps, ReactNode } from 'react';
import { wordsOf } from '../api/vocabulary';

export function PageTitle({ children, className }: { children: ReactNode; className?: string }) {
  return (
    <Title order={1} size="h3" className={className}>
      {children}
    </Title>
  );
}

/// What explains something else.
export function Hint(props: TextProps & { children: ReactNode }) {
  return <Text size="sm" c="dimmed" {...props} />;
}

export function SmallButton(props: ButtonProps & Omit<ComponentProps<'button'>, 'color' | 'style'>) {
  return <Button size="xs" variant="default" {...props} />;
}

interface ChoiceProps<W extends string> {
  label: string;
  value: W;
  /// What each of them is called, in order.
  words: Record<W, string>;
  onChange: (value: W) => void;
}

/// One of a few, all of them in sight.
export function Choice<W extends string>({ label, value, words, onChange }: ChoiceProps<W>) {
  const data = wordsOf(words).map((word) => ({ value: word, label: words[word] }));
  return <SegmentedControl size="xs" aria-label={label} value={value} onChange={onChange} data={data} />;
}

// Mantine's parts in the sizes that this page uses most.

import { Button, type ButtonProps, Text, type TextProps, Title } from '@mantine/core';
import type { ComponentProps, ReactNode } from 'react';

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

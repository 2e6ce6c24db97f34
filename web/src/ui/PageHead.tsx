import { Group, Title } from '@mantine/core';
import { CommandLine } from './CommandLine';

/// What the page is, and the same as a command.
export function PageHead({ title, command }: { title: string; command: string }) {
  return (
    <Group justify="space-between">
      <Title order={1} size="h3">
        {title}
      </Title>
      <CommandLine command={command} />
    </Group>
  );
}

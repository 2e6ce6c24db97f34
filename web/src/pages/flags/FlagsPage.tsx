import { Title } from '@mantine/core';

export function FlagsPage() {
  return <Title order={1}>Flags</Title>;
}

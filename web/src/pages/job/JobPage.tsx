import { Title } from '@mantine/core';

export function JobPage() {
  return <Title order={1}>Job</Title>;
}

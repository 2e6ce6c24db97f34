import { Title } from '@mantine/core';

export function TopicsPage() {
  return <Title order={1}>Topics</Title>;
}

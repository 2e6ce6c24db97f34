import { Title } from '@mantine/core';

export function TopicPage() {
  return <Title order={1}>Topic</Title>;
}

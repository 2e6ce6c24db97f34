import { Title } from '@mantine/core';

export function JobsPage() {
  return <Title order={1}>Jobs</Title>;
}

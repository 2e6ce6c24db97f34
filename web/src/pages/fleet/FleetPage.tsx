import { Title } from '@mantine/core';

export function FleetPage() {
  return <Title order={1}>Fleet</Title>;
}

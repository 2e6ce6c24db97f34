import { Title } from '@mantine/core';

export function BudgetPage() {
  return <Title order={1}>Budget</Title>;
}

import { Title } from '@mantine/core';

export function BudgetsPage() {
  return <Title order={1}>Budgets</Title>;
}

import { Anchor, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { budgetQuery } from '../../api/queries';
import type { Budget } from '../../api/types';
import { useTitle } from '../../app/title';
import { Hint, PageTitle } from '../../ui/Basics';
import { CodeText } from '../../ui/CodeText';
import { CommandLine } from '../../ui/CommandLine';
import { count, shellWord, usd } from '../../ui/format';
import { Panel } from '../../ui/Panel';
import { Loaded } from '../../ui/States';
import classes from './Budgets.module.css';
import { BurndownPanel } from './BurndownPanel';
import { CorrectForm } from './CorrectForm';
import { KillSwitch, PauseNote } from './KillSwitch';
import { LimitForm } from './LimitForm';
import { Meter } from './Meter';
import { ProductFacts } from './ProductFacts';
import { utc } from './spending';

export function BudgetPage() {
  const { product } = useParams({ from: '/budgets/$product' });
  const budget = useQuery(budgetQuery(product));
  useTitle(`${product} budget`);
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <div>
          <Anchor component={Link} to="/budgets" size="xs">
            Budgets
          </Anchor>
          <PageTitle>{product}</PageTitle>
        </div>
        <Group gap="xs">
          <CommandLine command={`giga budget show ${shellWord(product)}`} />
          {budget.data && <KillSwitch budget={budget.data} />}
        </Group>
      </Group>
      <Loaded query={budget} what="budget">
        {(data) => (
          // What was typed for one product must not carry over to another.
          <Stack gap="md" key={product}>
            <PauseNote budget={data} />
            {data.warnings?.map((warning) => (
              <Text key={warning} size="sm" c="var(--giga-warn)">
                <CodeText text={warning} />
              </Text>
            ))}
            <Periods budget={data} />
            <BurndownPanel budget={data} />
            <div className={classes.columns}>
              <LimitForm budget={data} />
              <div className={classes.column}>
                <ProductFacts product={product} />
                <CorrectForm product={product} />
              </div>
            </div>
          </Stack>
        )}
      </Loaded>
    </Stack>
  );
}

function Periods({ budget }: { budget: Budget }) {
  return (
    <Panel
      title="Current spending"
      aside={
        <Hint size="xs">
          {usd(budget.reservedUsd)} reserved for running jobs · default limit per job: {usd(budget.jobUsd)}
        </Hint>
      }
    >
      <ul className={classes.periods}>
        {budget.periods.map((period) => (
          <li key={period.period}>
            <Meter period={period} reservedUsd={budget.reservedUsd} />
            <div className={classes.aside}>{period.until ? `until ${utc(period.until)}` : 'all time'}</div>
            {period.tokens > 0 && <div className={classes.aside}>{count(period.tokens)} tokens</div>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

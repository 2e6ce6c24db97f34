import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { budgetsQuery, metricsQuery, productsQuery } from '../../api/queries';
import type { Budget } from '../../api/types';
import { labelOf, PERIOD, wordsOf } from '../../api/vocabulary';
import { useRowKeys } from '../../app/keys';
import { CodeText } from '../../ui/CodeText';
import { CommandLine } from '../../ui/CommandLine';
import { Filtered } from '../../ui/FilterInput';
import { urgentFirst } from '../../ui/filter';
import { usd } from '../../ui/format';
import { PageHead, Panel } from '../../ui/Panel';
import { Empty, Loaded } from '../../ui/States';
import classes from './Budgets.module.css';
import { KillSwitch, PauseNote } from './KillSwitch';
import { Meter } from './Meter';
import { isUrgent, periodOf, withoutBudget } from './spending';

export function BudgetsPage() {
  useRowKeys();
  const budgets = useQuery(budgetsQuery());
  return (
    <Stack gap="md">
      <PageHead title="Budgets" command="giga budget list" />
      <Panel title="Products" aside={<Key />}>
        <Loaded query={budgets} what="budgets">
          {(data) =>
            data.budgets.length === 0 ? (
              <Empty title="No budgets set, and nothing spent">
                Without a limit, jobs may spend what their manifests allow. Set one:{' '}
                <CommandLine command="giga budget set demo --day 20 --month 300" />
              </Empty>
            ) : (
              <Products budgets={data.budgets} />
            )
          }
        </Loaded>
      </Panel>
      <Others budgets={budgets.data?.budgets} />
    </Stack>
  );
}

/// Paused products, and those over a limit, first.
function Products({ budgets }: { budgets: Budget[] }) {
  return (
    <Filtered
      all={urgentFirst(budgets, isUrgent)}
      one="product"
      text={({ productId }) => productId}
      label="Filter products by name"
      placeholder="Product"
      className={classes.filter}
    >
      {(shown) => (
        <ul className={classes.list}>
          {shown.map((budget) => (
            <BudgetRow key={budget.productId} budget={budget} />
          ))}
        </ul>
      )}
    </Filtered>
  );
}

/// What the bars mean.
function Key() {
  return (
    <span className={classes.key}>
      <span className={classes.swatch} data-kind="spent" aria-hidden /> spent
      <span className={classes.swatch} data-kind="reserved" aria-hidden /> reserved for running jobs
    </span>
  );
}

function BudgetRow({ budget }: { budget: Budget }) {
  const { productId } = budget;
  return (
    <li className={classes.row}>
      <div className={classes.head}>
        <Link to="/budgets/$product" params={{ product: productId }} className={classes.product} data-row>
          {productId}
        </Link>
        <span className={classes.aside}>
          {budget.reservedUsd > 0 ? `${usd(budget.reservedUsd)} reserved` : 'nothing reserved'}
        </span>
        <span className={classes.aside}>
          {budget.tightest
            ? `${usd(budget.leftUsd)} left (${labelOf(PERIOD, budget.tightest)} limit)`
            : 'no limit'}
        </span>
      </div>
      <div className={classes.meters}>
        {wordsOf(PERIOD).map((name) => {
          const period = periodOf(budget, name);
          return period && <Meter key={name} period={period} reservedUsd={budget.reservedUsd} />;
        })}
      </div>
      <div className={classes.actions}>
        <KillSwitch budget={budget} />
      </div>
      {(budget.paused || (budget.warnings?.length ?? 0) > 0) && (
        <div className={classes.notes}>
          <PauseNote budget={budget} />
          {budget.warnings?.map((warning) => (
            <p key={warning} className={classes.warning}>
              <CodeText text={warning} />
            </p>
          ))}
        </div>
      )}
    </li>
  );
}

/// Products without a budget, and new ones.
function Others({ budgets }: { budgets: Budget[] | undefined }) {
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  const products = useQuery(productsQuery()).data?.products.map((product) => product.productId);
  const working = useQuery(metricsQuery()).data?.products.map((product) => product.productId);
  if (!budgets) return null;
  const others = withoutBudget(budgets, products ?? [], working ?? []);
  const open = (event: FormEvent) => {
    event.preventDefault();
    const product = typed.trim();
    if (product) void navigate({ to: '/budgets/$product', params: { product } });
  };
  return (
    <Panel title="Another product">
      {others.length > 0 && (
        <Text size="sm" mb="sm">
          Without a budget:{' '}
          {others.map((product, at) => (
            <span key={product}>
              {at > 0 && ', '}
              <Link to="/budgets/$product" params={{ product }} className={classes.product}>
                {product}
              </Link>
            </span>
          ))}
        </Text>
      )}
      <form onSubmit={open}>
        <Group align="flex-end" gap="xs">
          <TextInput
            label="Product"
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            size="xs"
          />
          <Button type="submit" size="xs" variant="default" disabled={typed.trim() === ''}>
            Open its budget
          </Button>
        </Group>
      </form>
    </Panel>
  );
}

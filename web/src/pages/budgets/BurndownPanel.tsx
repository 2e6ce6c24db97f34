import { Group, SegmentedControl, Table } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useMemo, useState } from 'react';
import { api } from '../../api/client';
import { keys, POLLED, reads } from '../../api/queries';
import type { Budget, Burndown } from '../../api/types';
import { labelOf, PERIOD } from '../../api/vocabulary';
import { withRetry } from '../../app/loadChunk';
import { SPANS, type Span } from '../../app/search';
import { Hint, SmallButton } from '../../ui/Basics';
import { CommandLine } from '../../ui/CommandLine';
import { count, shellWord, usd } from '../../ui/format';
import { Panel, ScrollBox } from '../../ui/Panel';
import { Loaded } from '../../ui/States';
import classes from './Budgets.module.css';
import { BUCKETS, bottom, commandOf, type Lines, lines, top } from './burndown';
import { periodOf, utc } from './spending';

const HEIGHT = 260;

// Loaded when a chart is shown: the library is not part of the first screen.
const ChartCanvas = lazy(
  withRetry(() => import('../../ui/ChartCanvas').then((module) => ({ default: module.ChartCanvas }))),
);

const burndownQuery = (product: string, span: Span, from: string | undefined) =>
  reads(
    [...keys.budget(product), 'burndown', span, from],
    (init) => {
      const params = { path: { product }, query: { from, bucket: BUCKETS[span] } };
      return api.GET('/api/fleet/budgets/{product}/burndown', { params, ...init });
    },
    POLLED,
  );

export function BurndownPanel({ budget }: { budget: Budget }) {
  const { span = 'month' } = useSearch({ from: '/budgets/$product' });
  const navigate = useNavigate({ from: '/budgets/$product' });
  const [asTable, setAsTable] = useState(false);
  const from = periodOf(budget, span)?.since ?? undefined;
  // Another span or another day: the old drawing stays until the new one is there.
  const burndown = useQuery({
    ...burndownQuery(budget.productId, span, from),
    placeholderData: keepPreviousData,
  });
  return (
    <Panel
      title="Burndown"
      aside={
        <Group gap="xs">
          <SegmentedControl
            size="xs"
            aria-label="Period"
            value={span}
            onChange={(value) => void navigate({ search: { span: value as Span }, replace: true })}
            data={SPANS.map((value) => ({ value, label: `this ${value}` }))}
          />
          <SmallButton onClick={() => setAsTable(!asTable)} aria-pressed={asTable}>
            Show as table
          </SmallButton>
        </Group>
      }
    >
      <div className={classes.place}>
        <Loaded query={burndown} what="burndown">
          {(data) =>
            asTable ? <Ledger burndown={data} /> : <Drawing burndown={data} budget={budget} span={span} />
          }
        </Loaded>
      </div>
      <CommandLine command={commandOf(shellWord(budget.productId), burndown.data)} />
    </Panel>
  );
}

function Drawing({ burndown, budget, span }: { burndown: Burndown; budget: Budget; span: Span }) {
  const drawn = useMemo(() => lines(burndown, budget, span), [burndown, budget, span]);
  const chart = useMemo(() => drawn && <Curve lines={drawn} span={span} />, [drawn, span]);
  if (!drawn) return null;
  const elsewhere =
    drawn.limit === undefined && burndown.ceilingUsd !== null && burndown.ceilingUsd !== undefined;
  return (
    <figure className={classes.figure}>
      {chart}
      <figcaption className={classes.legend}>
        <span>
          <i className={classes.curveKey} data-kind="spent" aria-hidden /> spent {usd(drawn.spent.at(-1))}
        </span>
        <span>
          <i className={classes.curveKey} data-kind="reserved" aria-hidden /> reserved {usd(drawn.reserved)}
        </span>
        {drawn.limit !== undefined ? (
          <>
            <span>
              <i className={classes.curveKey} data-kind="limit" aria-hidden /> limit {usd(drawn.limit)}
            </span>
            <span>
              <i className={classes.curveKey} data-kind="even" aria-hidden /> even spending
            </span>
          </>
        ) : (
          <span>
            no {PERIOD[span].label} limit
            {elsewhere &&
              `; the ${labelOf(PERIOD, burndown.ceilingOf ?? '')} limit is ${usd(burndown.ceilingUsd)}`}
          </span>
        )}
        <span>times in UTC</span>
      </figcaption>
    </figure>
  );
}

function Curve({ lines: drawn, span }: { lines: Lines; span: Span }) {
  const { from, to, now, limit, reserved } = drawn;
  const spent = drawn.spent.at(-1) ?? 0;
  // The end of the period is a point of its own: the limit reaches it, the spending does not.
  const ends = to > now;
  const x = ends ? [...drawn.x, to] : drawn.x;
  const evenly = (at: number) => ((limit ?? 0) * (at - from)) / Math.max(1, to - from);
  return (
    <div style={{ height: HEIGHT }}>
      <Suspense>
        <ChartCanvas
          label={`This ${span}: ${usd(spent)} spent, ${usd(reserved)} reserved, ${limit === undefined ? 'no limit' : `limit ${usd(limit)}`}`}
          height={HEIGHT}
          x={x}
          range={{ from, to, bottom: bottom(drawn), top: top(drawn) }}
          mark={ends ? now : undefined}
          band={
            reserved > 0
              ? {
                  from: now,
                  to: ends ? to : now + (now - from) * 0.03,
                  bottom: spent,
                  top: spent + reserved,
                  color: 'busy',
                }
              : undefined
          }
          value={usd}
          lines={[
            {
              name: 'spent',
              color: 'busy',
              values: ends ? [...drawn.spent, null] : drawn.spent,
              filled: true,
            },
            ...(limit === undefined
              ? []
              : [
                  { name: 'limit', color: 'bad' as const, values: x.map(() => limit), dashed: true },
                  { name: 'even', color: 'quiet' as const, values: x.map(evenly), dashed: true },
                ]),
          ]}
        />
      </Suspense>
    </div>
  );
}

/// The same as figures. Empty buckets are left out.
function Ledger({ burndown }: { burndown: Burndown }) {
  const rows = burndown.buckets.filter((bucket) => bucket.usd !== 0 || bucket.runs > 0 || bucket.tokens > 0);
  if (rows.length === 0) {
    return <Hint>Nothing spent since {utc(burndown.from)}.</Hint>;
  }
  return (
    <ScrollBox className={classes.scroll} label="Spending over time">
      <Table className={classes.ledger}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">from</Table.Th>
            <Table.Th scope="col">spent</Table.Th>
            <Table.Th scope="col">total</Table.Th>
            <Table.Th scope="col">runs</Table.Th>
            <Table.Th scope="col">tokens</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((bucket) => (
            <Table.Tr key={bucket.from}>
              <Table.Td>{utc(bucket.from)}</Table.Td>
              <Table.Td>{usd(bucket.usd)}</Table.Td>
              <Table.Td>{usd(bucket.cumulativeUsd)}</Table.Td>
              <Table.Td>{count(bucket.runs)}</Table.Td>
              <Table.Td>{count(bucket.tokens)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollBox>
  );
}

import { Group, Stack, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { poolsQuery } from '../../api/queries';
import type { Pool } from '../../api/types';
import { labelOf, POOL_DRIVER, POOL_STATUS, toneOf } from '../../api/vocabulary';
import { useRowKeys } from '../../app/keys';
import { SmallButton } from '../../ui/Basics';
import { CodeText } from '../../ui/CodeText';
import { CommandLine } from '../../ui/CommandLine';
import { count, duration, sentence, usd } from '../../ui/format';
import { PageHead, Panel, ScrollBox } from '../../ui/Panel';
import { Empty, Loaded } from '../../ui/States';
import { visible } from '../../ui/visible';
import { MemberBar } from './MemberBar';
import { PoolForm } from './PoolForm';
import classes from './Pools.module.css';
import { useMayPools } from './useMayPools';

/// Templates of factories: what each has, and what it is doing.
export function PoolsPage() {
  useRowKeys();
  const pools = useQuery(poolsQuery());
  const may = useMayPools('admin');
  const navigate = useNavigate();
  const [making, setMaking] = useState(false);
  return (
    <Stack gap="md">
      <PageHead title="Pools" command="giga pool list" />
      {!making && (
        <Group>
          <SmallButton
            disabled={!may}
            title={may ? undefined : 'requires the admin role, and a token for all products'}
            onClick={() => setMaking(true)}
          >
            New pool…
          </SmallButton>
        </Group>
      )}
      {making && (
        <PoolForm
          taken={pools.data?.pools.map((pool) => pool.name)}
          onDone={({ name }) => void navigate({ to: '/pools/$name', params: { name } })}
          onCancel={() => setMaking(false)}
        />
      )}
      <Loaded query={pools} what="pools">
        {(data) => (
          <Panel title="Pools">{data.pools.length === 0 ? <NoPools /> : <Pools pools={data.pools} />}</Panel>
        )}
      </Loaded>
    </Stack>
  );
}

function NoPools() {
  return (
    <Empty title="No pools">
      <p>
        A pool starts factories while jobs wait, and lets them leave when they are idle. One on the
        coordinator’s host:
      </p>
      <CommandLine command="giga pool set local --max 4" />
    </Empty>
  );
}

function Pools({ pools }: { pools: Pool[] }) {
  return (
    <ScrollBox className={classes.box} label="Pools and their factories">
      <Table miw={860}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Pool</Table.Th>
            <Table.Th>Driver</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th>Factories</Table.Th>
            <Table.Th>Wanted</Table.Th>
            <Table.Th>Waiting jobs</Table.Th>
            <Table.Th>Start</Table.Th>
            <Table.Th>Cost</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {pools.map((pool) => (
            <Row key={pool.name} pool={pool} />
          ))}
        </Table.Tbody>
      </Table>
    </ScrollBox>
  );
}

function Row({ pool }: { pool: Pool }) {
  const { name, settings } = pool;
  return (
    <Table.Tr>
      <Table.Th scope="row" className={classes.name}>
        <Link to="/pools/$name" params={{ name }} data-row>
          {visible(name)}
        </Link>
      </Table.Th>
      <Table.Td>{labelOf(POOL_DRIVER, settings.driver)}</Table.Td>
      <Table.Td>
        <span className={classes.status} data-tone={toneOf(POOL_STATUS, pool.state)}>
          {labelOf(POOL_STATUS, pool.state)}
        </span>
        <span className={classes.summary}>
          <CodeText text={visible(sentence(pool.summary))} />
        </span>
      </Table.Td>
      <Table.Td>
        <MemberBar pool={pool} />
      </Table.Td>
      <Table.Td className={classes.number}>{count(pool.target)}</Table.Td>
      <Table.Td className={classes.number}>{pool.waiting === 0 ? '–' : count(pool.waiting)}</Table.Td>
      <Table.Td className={classes.number}>{duration(pool.startMs)}</Table.Td>
      <Table.Td className={classes.number}>
        {settings.costUsdPerHour == null ? '–' : `${usd(settings.costUsdPerHour)}/h`}
      </Table.Td>
    </Table.Tr>
  );
}

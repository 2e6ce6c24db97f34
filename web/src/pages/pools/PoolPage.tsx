import { Group, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { factoriesQuery, poolQuery } from '../../api/queries';
import type { Pool, PoolMember } from '../../api/types';
import { labelOf, POOL_STATUS, toneOf } from '../../api/vocabulary';
import { useTitle } from '../../app/title';
import { Ago } from '../../ui/Ago';
import { PageTitle, SmallButton } from '../../ui/Basics';
import { CodeText } from '../../ui/CodeText';
import { CommandLine } from '../../ui/CommandLine';
import { count, duration, plural, sentence, usd } from '../../ui/format';
import { AnchorLink } from '../../ui/links';
import { Note } from '../../ui/Note';
import { Panel, ScrollBox } from '../../ui/Panel';
import { Empty, Loaded } from '../../ui/States';
import { visible } from '../../ui/visible';
import { MemberBar } from './MemberBar';
import { PoolSwitch, RemoveButton } from './PoolActions';
import { PoolForm } from './PoolForm';
import classes from './Pools.module.css';
import { MEMBER_WORD, memberWord, poolCommand, settingsInWords } from './pools';
import { useMayPools } from './useMayPools';

export function PoolPage() {
  const { name } = useParams({ from: '/pools/$name' });
  const query = useQuery(poolQuery(name));
  useTitle(`${name} pool`);
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <div>
          <AnchorLink to="/pools" size="xs">
            Pools
          </AnchorLink>
          <PageTitle>{visible(name)}</PageTitle>
        </div>
        <CommandLine command={poolCommand('show', name)} />
      </Group>
      <Loaded query={query} what="pool">
        {(pool) => <PoolView key={pool.name} pool={pool} />}
      </Loaded>
    </Stack>
  );
}

function PoolView({ pool }: { pool: Pool }) {
  const navigate = useNavigate();
  const may = useMayPools('admin');
  const [changing, setChanging] = useState(false);
  return (
    <>
      <Group justify="space-between">
        <Text size="sm" component="p" m={0}>
          <span className={classes.status} data-tone={toneOf(POOL_STATUS, pool.state)}>
            {labelOf(POOL_STATUS, pool.state)}
          </span>{' '}
          <CodeText text={visible(sentence(pool.summary))} />
        </Text>
        <Group gap="xs">
          <SmallButton
            disabled={!may || changing}
            title={may ? undefined : 'requires the admin role, and a token for all products'}
            onClick={() => setChanging(true)}
          >
            Change…
          </SmallButton>
          <PoolSwitch pool={pool} />
          <RemoveButton pool={pool} onRemoved={() => void navigate({ to: '/pools' })} />
        </Group>
      </Group>
      {pool.failure && (
        <Note tone="bad" title={`${plural(pool.failure.inARow, 'start')} failed in a row`}>
          <CodeText text={visible(sentence(pool.failure.reason))} />
          {pool.failure.retryAt && (
            <>
              {'; tried again '}
              <Ago at={pool.failure.retryAt} />
            </>
          )}
        </Note>
      )}
      {changing && (
        <PoolForm pool={pool} onDone={() => setChanging(false)} onCancel={() => setChanging(false)} />
      )}
      <Panel title="Factories">
        <MemberBar pool={pool} />
        {pool.members.length === 0 ? (
          <Empty title="It has no factories now" />
        ) : (
          <Members members={pool.members} />
        )}
      </Panel>
      <Panel title="Now">
        <dl className={classes.facts}>
          <dt>Wanted</dt>
          <dd>{plural(pool.target, 'factory', 'factories')}</dd>
          <dt>Waiting for it</dt>
          <dd>{pool.waiting === 0 ? 'no jobs' : plural(pool.waiting, 'job')}</dd>
          <dt>Start</dt>
          <dd>{pool.startMs == null ? 'not seen yet' : `takes about ${duration(pool.startMs)}`}</dd>
          <dt>Ordered so far</dt>
          <dd>{count(pool.starts)}</dd>
          {pool.costUsd != null && (
            <>
              <dt>Cost</dt>
              <dd>{usd(pool.costUsd)} for the hours of the factories that it has now</dd>
            </>
          )}
        </dl>
      </Panel>
      <Panel title="Settings">
        <dl className={classes.facts}>
          {settingsInWords(pool.settings).map(([term, text]) => (
            <Setting key={term} term={term} text={text} />
          ))}
        </dl>
      </Panel>
    </>
  );
}

function Setting({ term, text }: { term: string; text: string }) {
  return (
    <>
      <dt>{term}</dt>
      <dd>{visible(text)}</dd>
    </>
  );
}

function Members({ members }: { members: PoolMember[] }) {
  const factories = useQuery(factoriesQuery()).data?.factories;
  const there = new Set(factories?.map((factory) => factory.id));
  return (
    <ScrollBox className={classes.box} label="Factories of the pool">
      <Table miw={640}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Factory</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th>Jobs</Table.Th>
            <Table.Th>Ordered</Table.Th>
            <Table.Th>Idle since</Table.Th>
            <Table.Th>Why</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {members.map((member) => (
            <Member key={member.factoryId} member={member} linked={there.has(member.factoryId)} />
          ))}
        </Table.Tbody>
      </Table>
    </ScrollBox>
  );
}

function Member({ member, linked }: { member: PoolMember; linked: boolean }) {
  const { label, tone } = MEMBER_WORD[memberWord(member)];
  const id = visible(member.factoryId);
  return (
    <Table.Tr>
      <Table.Th scope="row" title={member.handle ?? undefined}>
        {linked ? (
          <AnchorLink to="/" hash={`factory-${member.factoryId}`} size="sm">
            {id}
          </AnchorLink>
        ) : (
          id
        )}
      </Table.Th>
      <Table.Td className={classes.state} data-tone={tone}>
        {label}
      </Table.Td>
      <Table.Td className={classes.number}>{member.jobs === 0 ? '–' : count(member.jobs)}</Table.Td>
      <Table.Td>
        <Ago at={member.orderedAt} />
      </Table.Td>
      <Table.Td>{member.idleSince ? <Ago at={member.idleSince} /> : '–'}</Table.Td>
      <Table.Td className={classes.why}>
        {member.reason ? <CodeText text={visible(sentence(member.reason))} /> : '–'}
      </Table.Td>
    </Table.Tr>
  );
}

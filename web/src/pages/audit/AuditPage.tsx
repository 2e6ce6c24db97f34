import { Button, Group, NativeSelect, Stack, TextInput } from '@mantine/core';
import { infiniteQueryOptions, keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { answer, api } from '../../api/client';
import { keys } from '../../api/queries';
import type { AuditEntry } from '../../api/types';
import { useRowKeys } from '../../app/keys';
import { useMay } from '../../session/useSession';
import { Time } from '../../ui/Ago';
import { AnchorLink } from '../../ui/links';
import { PageHead, Panel, ScrollBox } from '../../ui/Panel';
import { Empty, Loading, ProblemAlert } from '../../ui/States';
import classes from './Audit.module.css';
import { type AuditFilter, auditCommand, auditParams, SINCE, typesOf } from './filter';

/// Who did what, newest first.
export function AuditPage() {
  const [filter, setFilter] = useState<AuditFilter>({ actor: '', kind: '', since: '' });
  const may = useMay('operator');
  useRowKeys();
  return (
    <Stack gap="md">
      <PageHead title="Audit" command={auditCommand(filter)} />
      <Panel title="Who did what">
        <FilterForm filter={filter} onChange={setFilter} />
        {may ? (
          <Entries filter={filter} />
        ) : (
          <Empty title="Not for this token">
            <p>The audit log needs the role operator or higher.</p>
          </Empty>
        )}
      </Panel>
    </Stack>
  );
}

function FilterForm({ filter, onChange }: { filter: AuditFilter; onChange: (filter: AuditFilter) => void }) {
  const [typed, setTyped] = useState(filter);
  const apply = (event: FormEvent) => {
    event.preventDefault();
    onChange(typed);
  };
  return (
    <form onSubmit={apply}>
      <Group align="flex-end" gap="xs" mb="sm">
        <TextInput
          size="xs"
          label="Who"
          placeholder="ana, mac-1, or * for anybody"
          value={typed.actor}
          onChange={(event) => setTyped({ ...typed, actor: event.currentTarget.value })}
        />
        <TextInput
          size="xs"
          label="Types"
          placeholder="token.issued, flag.changed"
          value={typed.kind}
          onChange={(event) => setTyped({ ...typed, kind: event.currentTarget.value })}
        />
        <NativeSelect
          size="xs"
          label="Since"
          data={SINCE.map(({ label, value }) => ({ label, value }))}
          value={typed.since}
          onChange={(event) => setTyped({ ...typed, since: event.currentTarget.value })}
        />
        <Button type="submit" size="xs" variant="default">
          Filter
        </Button>
      </Group>
    </form>
  );
}

function Entries({ filter }: { filter: AuditFilter }) {
  const query = useInfiniteQuery({ ...auditQuery(filter), placeholderData: keepPreviousData });
  if (query.isError) return <ProblemAlert error={query.error} retry={() => void query.refetch()} />;
  if (!query.data) return <Loading what="audit log" />;
  const entries = query.data.pages.flatMap((page) => page.entries);
  return (
    <>
      {entries.length === 0 ? <Empty title="Nothing found" /> : <Table entries={entries} />}
      {query.hasNextPage && (
        <Button
          mt="xs"
          size="xs"
          variant="default"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          Show older
        </Button>
      )}
    </>
  );
}

function Table({ entries }: { entries: AuditEntry[] }) {
  return (
    <ScrollBox className={classes.box} label="Audit log">
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">when</th>
            <th scope="col">who</th>
            <th scope="col">what</th>
            <th scope="col">type</th>
            <th scope="col">product</th>
            <th scope="col">job</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={entry.pos}>
              <td className={classes.when}>
                <Time at={entry.at}>{entry.at.replace('T', ' ').replace(/\.\d+Z$|Z$/, '')}</Time>
              </td>
              <td className={classes.who} title={entry.actorId}>
                {entry.actor}
              </td>
              <td className={classes.what}>{entry.cause}</td>
              <td className={classes.dim}>{entry.type}</td>
              <td>{entry.productId}</td>
              <td>
                {entry.jobId && (
                  <AnchorLink to="/jobs/$id" params={{ id: entry.jobId }} search={{}} size="xs">
                    {entry.jobId}
                  </AnchorLink>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollBox>
  );
}

function auditQuery(filter: AuditFilter) {
  return infiniteQueryOptions({
    queryKey: [...keys.audit, filter],
    queryFn: ({ signal, pageParam }) => {
      const query = { ...auditParams(filter, Date.now()), kind: typesOf(filter.kind), before: pageParam };
      return answer(api.GET('/api/fleet/audit', { params: { query }, signal }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.nextBefore == null ? undefined : String(page.nextBefore)),
  });
}

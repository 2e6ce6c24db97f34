import { Stack, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { capabilitiesQuery } from '../../api/queries';
import type { CapabilityUse } from '../../api/types';
import { Ago } from '../../ui/Ago';
import { PageHead, Panel, ScrollBox } from '../../ui/Panel';
import { Empty, Loading, ProblemAlert } from '../../ui/States';
import { visible } from '../../ui/visible';
import classes from './Capabilities.module.css';
import { askedForBy, holders, inUse, isMissing } from './capabilities';

/// Supply and demand: what is asked for and missing first, as the coordinator sorts it.
export function CapabilitiesPage() {
  const query = useQuery(capabilitiesQuery());
  const all = query.data?.capabilities ?? [];
  return (
    <Stack gap="md">
      <PageHead title="Capabilities" command="giga capability list" />
      {query.isError && <ProblemAlert error={query.error} retry={() => void query.refetch()} />}
      {query.isPending && <Loading what="capabilities" />}
      {query.data && all.length === 0 && (
        <Empty title="No capabilities">
          <p>Factories report what they have with their heartbeats.</p>
        </Empty>
      )}
      {all.length > 0 && (
        <Panel title="Supply and demand">
          <ScrollBox className={classes.box} label="Supply and demand of capabilities">
            <Table miw={640}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Capability</Table.Th>
                  <Table.Th>Waiting</Table.Th>
                  <Table.Th>Running</Table.Th>
                  <Table.Th>In use</Table.Th>
                  <Table.Th>Asked for by</Table.Th>
                  <Table.Th>Factories</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {all.map((one) => (
                  <Row key={one.capability} known={one} />
                ))}
              </Table.Tbody>
            </Table>
          </ScrollBox>
        </Panel>
      )}
    </Stack>
  );
}

function Row({ known }: { known: CapabilityUse }) {
  const missing = isMissing(known);
  return (
    <Table.Tr>
      <Table.Td>{visible(known.capability)}</Table.Td>
      <Table.Td data-tone={missing ? 'bad' : undefined} className={missing ? classes.missing : undefined}>
        {known.queued === 0 ? '–' : known.queued}
        {known.oldestEnqueuedAt && (
          <>
            {', first '}
            <Ago at={known.oldestEnqueuedAt} />
          </>
        )}
      </Table.Td>
      <Table.Td>{known.running === 0 ? '–' : known.running}</Table.Td>
      <Table.Td>{inUse(known)}</Table.Td>
      <Table.Td>{visible(askedForBy(known))}</Table.Td>
      <Table.Td>{visible(holders(known))}</Table.Td>
    </Table.Tr>
  );
}

import { Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { whoamiQuery } from '../../api/queries';
import { type Remedy, ROLES, type Role } from '../../api/types';
import { CommandLine } from '../../ui/CommandLine';
import { ActionButton } from '../../ui/Confirm';
import { sentence } from './ExplainGroups';
import classes from './ExplainPanel.module.css';
import { Words } from './ExplainWords';

type Told = NonNullable<Remedy['call']>;
interface RemedyCall extends Pick<Told, 'method' | 'path' | 'body' | 'everyProduct'> {
  role: Role;
}

/// A call of our own API, and nothing else, whatever the answer said.
export function callOf({ call }: Remedy): RemedyCall | undefined {
  if (!call || !/^(POST|PUT|PATCH|DELETE)$/i.test(call.method)) return undefined;
  if (!/^\/api\/fleet\/[^?#\\]*$/.test(call.path) || call.path.split('/').includes('..')) return undefined;
  const role = ROLES.find((known) => known === call.role) ?? 'admin';
  return { ...call, method: call.method.toLowerCase(), role };
}

// Which call it is the coordinator says, so it has no type here; everything else is as for any other call.
type AnyCall = (
  method: string,
  path: string,
  init: { body?: unknown },
) => Promise<{ data?: unknown; error?: unknown; response: Response }>;
const request = api.request as unknown as AnyCall;

export function Remedies({ remedies }: { remedies: Remedy[] }) {
  return (
    <ol className={classes.remedies}>
      {remedies.map((remedy) => (
        <li key={`${remedy.message} ${remedy.command ?? ''}`}>
          <OneRemedy remedy={remedy} />
        </li>
      ))}
    </ol>
  );
}

export function OneRemedy({ remedy }: { remedy: Remedy }) {
  const client = useQueryClient();
  const me = useQuery(whoamiQuery()).data;
  const told = callOf(remedy);
  // Who may not do it at all is told the command, which somebody else may run.
  const call = told && (!told.everyProduct || me?.everyProduct) ? told : undefined;
  const deed = sentence(remedy.message.replaceAll('`', ''));
  return (
    <div className={classes.remedy}>
      <Text size="sm" component="span">
        <Words text={sentence(remedy.message)} />
      </Text>
      {call && (
        <ActionButton
          label="Do it"
          aria-label={`Do it: ${deed}`}
          role={call.role}
          command={remedy.command ?? undefined}
          confirm={{
            title: `${deed}?`,
            text: 'This takes effect at once, for every job it concerns.',
            yes: 'Do it',
          }}
          done={`Done: ${remedy.message.replaceAll('`', '')}`}
          run={async () => {
            await answer(request(call.method, call.path, call.body === undefined ? {} : { body: call.body }));
            await client.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'markdown' });
          }}
        />
      )}
      {remedy.command && <CommandLine command={remedy.command} />}
    </div>
  );
}

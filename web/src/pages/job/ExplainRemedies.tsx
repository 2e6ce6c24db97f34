import { Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { answer, api } from '../../api/client';
import { jobQuery, whoamiQuery } from '../../api/queries';
import type { Remedy } from '../../api/types';
import type { OperatorAction } from '../../api/vocabulary';
import { ROLE, wordIn } from '../../api/vocabulary';
import { CodeText } from '../../ui/CodeText';
import { CommandLine } from '../../ui/CommandLine';
import { ActionButton } from '../../ui/Confirm';
import { sentence } from '../../ui/format';
import { AnchorLink } from '../../ui/links';
import { visible } from '../../ui/visible';
import { ACTIONS, act, isLegal } from '../jobs/actions';
import classes from './ExplainPanel.module.css';

// The coordinator says which call it is, so it has no type here.
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
  const me = useQuery(whoamiQuery()).data;
  const asked = callOf(remedy);
  // Without permission there is only the command, which somebody else may run.
  const call = asked && (!asked.everyProduct || me?.everyProduct) ? asked : undefined;
  const action = call && actionOf(call);
  return (
    <div className={classes.remedy}>
      <Text size="sm" component="span">
        <CodeText text={sentence(remedy.message)} />
      </Text>
      <Subject remedy={remedy} />
      {action ? (
        <ActionFix key={action.id} id={action.id} name={action.name} remedy={remedy} />
      ) : (
        call && <CallFix call={call} remedy={remedy} />
      )}
      {remedy.command && <CommandLine command={remedy.command} />}
    </div>
  );
}

/// A link to the review, or to another job or the pool that this is about.
function Subject({ remedy }: { remedy: Remedy }) {
  const { id: here } = useParams({ strict: false });
  const about = jobOf(remedy);
  const pool = poolOf(remedy);
  if (pool) {
    return (
      <AnchorLink size="sm" to="/pools/$name" params={{ name: pool }}>
        Open the pool
      </AnchorLink>
    );
  }
  if (!about || (about.id === here && !about.review)) return null;
  return (
    <AnchorLink size="sm" to="/jobs/$id" params={{ id: about.id }} search={{}}>
      {about.review ? 'Open the review' : 'Open the job'}
    </AnchorLink>
  );
}

/// An action on a job, only if the job is still as this page shows it.
function ActionFix({ id, name, remedy }: { id: string; name: OperatorAction; remedy: Remedy }) {
  const refresh = useRefresh();
  const { data: job } = useQuery(jobQuery(id));
  const action = ACTIONS[name];
  // A job that is not visible, or that has moved on, gets no button.
  if (!job || !isLegal(name, job.stage)) return null;
  const title = visible(job.name);
  return (
    <ActionButton
      label={action.label}
      aria-label={`${action.label}: ${sentence(remedy.message)}`}
      role={action.role}
      color={action.danger ? 'red' : undefined}
      command={remedy.command ?? undefined}
      confirm={{
        title: `${action.label} ${title}?`,
        text: action.about,
        yes: action.yes ?? action.label,
        danger: action.danger,
      }}
      done={`${title} is ${action.done}`}
      run={() => act(name, job).finally(refresh)}
    />
  );
}

function CallFix({ call, remedy }: { call: RemedyCall; remedy: Remedy }) {
  const refresh = useRefresh();
  const label = callLabel(call);
  const what = sentence(remedy.message.replaceAll('`', ''));
  return (
    <ActionButton
      label={label}
      aria-label={`${label}: ${what}`}
      role={call.role}
      command={remedy.command ?? undefined}
      confirm={{
        title: `${what}?`,
        text: 'This takes effect at once, and not for this job alone.',
        yes: label,
      }}
      done={`Done: ${what}`}
      run={() =>
        answer(request(call.method, call.path, call.body === undefined ? {} : { body: call.body })).finally(
          refresh,
        )
      }
    />
  );
}

/// The name of the button: what the call does.
function callLabel({ path }: RemedyCall): string {
  if (/\/budgets\/[^/]+\/resume$/.test(path)) return 'Resume';
  if (/\/factories\/[^/]+\/drain$/.test(path)) return 'Stop draining';
  return /\/flags\/[^/]+$/.test(path) ? 'Set the flag' : 'Apply';
}

/// Also after an error: then things are no longer as they are shown.
function useRefresh(): () => Promise<void> {
  const client = useQueryClient();
  return () => client.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'markdown' });
}

// What a remedy asks for: a call of our own API, an action on a job, or a look at one. Whatever the answer says, nothing else
// comes of it.

type WireCall = NonNullable<Remedy['call']>;
/// The method as the client spells it.
const METHOD = { POST: 'post', PUT: 'put' } as const satisfies Record<WireCall['method'], string>;

export interface RemedyCall extends Omit<WireCall, 'method'> {
  method: (typeof METHOD)[WireCall['method']];
}

const ID = '[0-9A-HJKMNP-TV-Z]{26}';
const ACTION = new RegExp(`^/api/fleet/jobs/(${ID})/actions/([a-z]+)$`);
const COMMAND = new RegExp(`^giga (?:review|job [a-z]+) (${ID})(?: |$)`);

const POOL = /^giga pool (?:show|resume|set) ([A-Za-z0-9][A-Za-z0-9.-]{0,39})(?: |$)/;

export function callOf({ call }: Remedy): RemedyCall | undefined {
  const method = wordIn(METHOD, call?.method);
  if (!call || !method) return undefined;
  if (!/^\/api\/fleet\/[^?#\\]*$/.test(call.path) || call.path.split('/').includes('..')) return undefined;
  return { ...call, method: METHOD[method], role: wordIn(ROLE, call.role) ?? 'admin' };
}

/// An action that the page has its own button for, with its question and its check that the job has not changed.
export function actionOf(call: RemedyCall): { id: string; name: OperatorAction } | undefined {
  const [, id, word] = ACTION.exec(call.path) ?? [];
  const name = wordIn(ACTIONS, word);
  return call.method === 'post' && id && name ? { id, name } : undefined;
}

/// The job that the command is about, and whether it asks for a review.
export function jobOf({ command }: Remedy): { id: string; review: boolean } | undefined {
  const id = COMMAND.exec(command ?? '')?.[1];
  return id ? { id, review: command?.startsWith('giga review ') ?? false } : undefined;
}

/// The pool that the command is about.
export function poolOf({ command }: Remedy): string | undefined {
  return POOL.exec(command ?? '')?.[1];
}

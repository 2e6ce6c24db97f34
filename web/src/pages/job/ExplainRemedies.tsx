import { Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { answer, api } from '../../api/client';
import { jobQuery, whoamiQuery } from '../../api/queries';
import { type Remedy, ROLES, type Role } from '../../api/types';
import { CodeText } from '../../ui/CodeText';
import { CommandLine } from '../../ui/CommandLine';
import { ActionButton } from '../../ui/Confirm';
import { AnchorLink } from '../../ui/links';
import { visible } from '../../ui/visible';
import { ACTIONS, act, isLegal, JOB_ACTIONS, type JobActionName } from '../jobs/actions';
import { sentence } from './ExplainGroups';
import classes from './ExplainPanel.module.css';

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
  const me = useQuery(whoamiQuery()).data;
  const told = callOf(remedy);
  // Who may not do it at all is told the command, which somebody else may run.
  const call = told && (!told.everyProduct || me?.everyProduct) ? told : undefined;
  const action = call && actionOf(call);
  return (
    <div className={classes.remedy}>
      <Text size="sm" component="span">
        <CodeText text={sentence(remedy.message)} />
      </Text>
      <Where remedy={remedy} />
      {action ? (
        <DoAction key={action.id} id={action.id} name={action.name} remedy={remedy} />
      ) : (
        call && <DoCall call={call} remedy={remedy} />
      )}
      {remedy.command && <CommandLine command={remedy.command} />}
    </div>
  );
}

/// Where to look before anything is done: at the review, or at another job that this is about.
function Where({ remedy }: { remedy: Remedy }) {
  const { id: here } = useParams({ strict: false });
  const about = jobOf(remedy);
  if (!about || (about.id === here && !about.review)) return null;
  return (
    <AnchorLink size="sm" to="/jobs/$id" params={{ id: about.id }} search={{}}>
      {about.review ? 'To the review' : 'To that job'}
    </AnchorLink>
  );
}

/// An action on a job: in its own words, and only if the job is still as this page has it.
function DoAction({ id, name, remedy }: { id: string; name: JobActionName; remedy: Remedy }) {
  const again = useReadAgain();
  const { data: job } = useQuery(jobQuery(id));
  const action = ACTIONS[name];
  // One that cannot be seen, or that has moved on, is not acted on from here.
  if (!job || !isLegal(name, job.stage)) return null;
  const called = visible(job.name);
  return (
    <ActionButton
      label="Do it"
      aria-label={`Do it: ${sentence(remedy.message)}`}
      role={action.role}
      color={action.danger ? 'red' : undefined}
      command={remedy.command ?? undefined}
      confirm={{
        title: `${action.label} ${called}?`,
        text: action.about,
        yes: action.yes,
        danger: action.danger,
      }}
      done={`${called} is ${action.done}`}
      run={() => act(name, job).finally(again)}
    />
  );
}

function DoCall({ call, remedy }: { call: RemedyCall; remedy: Remedy }) {
  const again = useReadAgain();
  const deed = sentence(remedy.message.replaceAll('`', ''));
  return (
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
      run={() =>
        answer(request(call.method, call.path, call.body === undefined ? {} : { body: call.body })).finally(
          again,
        )
      }
    />
  );
}

/// Also after a refusal: then things are no longer as they are shown.
function useReadAgain(): () => Promise<void> {
  const client = useQueryClient();
  return () => client.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'markdown' });
}

type Told = NonNullable<Remedy['call']>;
export interface RemedyCall extends Pick<Told, 'method' | 'path' | 'body' | 'everyProduct'> {
  role: Role;
}

const ID = '[0-9A-HJKMNP-TV-Z]{26}';
const ACTION = new RegExp(`^/api/fleet/jobs/(${ID})/actions/([a-z]+)$`);
const COMMAND = new RegExp(`^giga (?:review|job [a-z]+) (${ID})(?: |$)`);

export function callOf({ call }: Remedy): RemedyCall | undefined {
  if (!call || !/^(POST|PUT|PATCH|DELETE)$/i.test(call.method)) return undefined;
  if (!/^\/api\/fleet\/[^?#\\]*$/.test(call.path) || call.path.split('/').includes('..')) return undefined;
  const role = ROLES.find((known) => known === call.role) ?? 'admin';
  return { ...call, method: call.method.toLowerCase(), role };
}

/// An action that the page knows by itself, with its words, its dangers and its care for a job that has changed.
export function actionOf(call: RemedyCall): { id: string; name: JobActionName } | undefined {
  const [, id, word] = ACTION.exec(call.path) ?? [];
  const name = JOB_ACTIONS.find((known) => known === word);
  return call.method === 'post' && id && name ? { id, name } : undefined;
}

/// The job that the command is about, and whether it asks for a look at its result.
export function jobOf({ command }: Remedy): { id: string; review: boolean } | undefined {
  const id = COMMAND.exec(command ?? '')?.[1];
  return id ? { id, review: command?.startsWith('giga review ') ?? false } : undefined;
}

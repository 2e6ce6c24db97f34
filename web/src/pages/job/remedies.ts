// What a remedy asks for: a call of our own API, an action on a job, or a look at one. Whatever the answer said, nothing
// else comes of it.

import { type Remedy, ROLES, type Role } from '../../api/types';
import { JOB_ACTIONS, type JobActionName } from '../jobs/actions';

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

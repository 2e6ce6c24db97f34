// Payloads: what is typed for one, and how one is shown.

import type { TopicJob } from '../../api/types';
import type { Priority } from '../../api/vocabulary';
import { shellWord } from '../../ui/format';

const PAYLOAD_BYTES = 256 * 1024;
const KEY_CHARS = 200;

/// What is wrong with it, if anything.
export function payloadError(text: string): string | undefined {
  if (text.trim() === '') return 'Enter JSON; {} is an empty payload';
  if (new TextEncoder().encode(text).length > PAYLOAD_BYTES) {
    return 'A payload is at most 256 KiB; store larger data elsewhere and send a reference';
  }
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `Not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

export interface NewJob {
  payload: string;
  priority: Priority;
  /// As `<input type="datetime-local">` has it: local time without a zone.
  runAt: string;
  key: string;
}

/// The time in UTC, or nothing where none was typed. What is no time is an error.
export function runAtOf(local: string): { at?: string; error?: string } {
  if (local.trim() === '') return {};
  const at = new Date(local);
  if (Number.isNaN(at.getTime())) return { error: 'Enter a date and a time, such as 2026-12-01 09:00' };
  return { at: at.toISOString().replace('.000Z', 'Z') };
}

export function keyError(key: string): string | undefined {
  return [...key].length > KEY_CHARS ? `At most ${KEY_CHARS} characters` : undefined;
}

/// Keys that a client generated, so that a call whose answer was lost can be repeated. Nobody has to see them.
export function isMadeUp(key: string): boolean {
  return /^(cli|web)-/.test(key);
}

/// The request as text: the payload's own bytes go into it, so that no number loses digits on the way.
export function enqueueBody(job: NewJob, madeUpKey: string): string {
  const fields = [`"payload":${job.payload.trim()}`, `"priority":${JSON.stringify(job.priority)}`];
  const { at } = runAtOf(job.runAt);
  if (at) fields.push(`"runAt":${JSON.stringify(at)}`);
  fields.push(`"idempotencyKey":${JSON.stringify(job.key.trim() || madeUpKey)}`);
  return `{${fields.join(',')}}`;
}

export function enqueueCommand(product: string, topic: string, job: NewJob): string {
  const payload = payloadError(job.payload) ? 'JSON' : shellWord(job.payload.trim());
  const { at } = runAtOf(job.runAt);
  return [
    `giga topic enqueue ${shellWord(topic)} ${payload}`,
    job.priority !== 'normal' && `--priority ${job.priority}`,
    at && `--run-at ${at}`,
    job.key.trim() && `--key ${shellWord(job.key.trim())}`,
    `--product ${shellWord(product)}`,
  ]
    .filter(Boolean)
    .join(' ');
}

interface Source {
  source?: string;
}
interface RawJson {
  rawJSON?: (text: string) => unknown;
}

/// JSON whose numbers keep the digits that they came with, where the browser can: a long id is not to be shown rounded.
export function parseExact(text: string): unknown {
  const raw = (JSON as RawJson).rawJSON;
  if (!raw) return JSON.parse(text);
  return JSON.parse(text, (_key: string, value: unknown, context?: Source) => {
    const source = context?.source;
    const isRounded = typeof value === 'number' && source !== undefined && String(value) !== source;
    return isRounded ? raw(source) : value;
  });
}

export interface Shown {
  kind: 'json' | 'base64' | 'none';
  text: string;
}

export function shown(job: Pick<TopicJob, 'payload' | 'payloadBase64'>): Shown {
  if (job.payloadBase64 !== null && job.payloadBase64 !== undefined)
    return { kind: 'base64', text: job.payloadBase64 };
  if (job.payload === undefined) return { kind: 'none', text: '' };
  return { kind: 'json', text: JSON.stringify(job.payload, null, 2) };
}

/// A job in the list, with its payload as text: what was parsed exactly does not survive being copied.
export interface ListedJob extends Omit<TopicJob, 'payload' | 'payloadBase64'> {
  shown: Shown;
  /// The beginning, on one line.
  glimpse: string;
}

const GLIMPSE = 80;

export function listed({ payload, payloadBase64, ...job }: TopicJob): ListedJob {
  const whole = shown({ payload, payloadBase64 });
  const line = whole.kind === 'json' ? JSON.stringify(payload) : whole.text;
  return { ...job, shown: whole, glimpse: line.length > GLIMPSE ? `${line.slice(0, GLIMPSE)}…` : line };
}

// The form of a pool: what is typed, what it means, and the `giga pool set` line that does the same.

import type { PoolSettings } from '../../api/types';
import { POOL_DRIVER, wordIn } from '../../api/vocabulary';
import { shellWord } from '../../ui/format';

export const FIELDS = [
  'driver',
  'command',
  'image',
  'namespace',
  'url',
  'capabilities',
  'products',
  'seats',
  'min',
  'max',
  'warm',
  'idle',
  'startTimeout',
  'cost',
  'chargeTo',
  'args',
] as const;
export type Field = (typeof FIELDS)[number];
export type Typed = Record<Field, string>;
export type Errors = Partial<Record<Field | 'name', string>>;

/// As the API has them where they are left out.
export const DEFAULTS: PoolSettings = {
  driver: 'process',
  command: [],
  image: null,
  namespace: null,
  args: [],
  url: null,
  capabilities: [],
  products: [],
  seats: 1,
  min: 0,
  max: 1,
  warm: 0,
  idleMs: 300_000,
  startTimeoutMs: 600_000,
  costUsdPerHour: null,
  chargeTo: null,
  paused: false,
};

/// The coordinator leaves out what is empty, and so may one that knows fewer settings.
export function wholeSettings(told: Partial<PoolSettings>): PoolSettings {
  return { ...DEFAULTS, ...told };
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const;

/// As the command line reads times: `90s`, `10m`, `1h30m`.
export function timeText(millis: number): string {
  let [rest, text] = [Math.max(0, Math.round(millis)), ''];
  for (const [unit, size] of UNITS) {
    const whole = Math.floor(rest / size);
    rest -= whole * size;
    if (whole > 0) text += `${whole}${unit}`;
  }
  return text || '0s';
}

export function parseTime(text: string): number | undefined {
  const typed = text.trim();
  if (!/^(\d{1,12}(ms|[dhms]))+$/.test(typed)) return undefined;
  const size = new Map<string, number>(UNITS);
  let sum = 0;
  for (const [, digits, unit] of typed.matchAll(/(\d+)(ms|[dhms])/g)) {
    sum += Number(digits) * (size.get(unit ?? '') ?? Number.NaN);
  }
  return sum;
}

/// One word per line: words may have blanks in them.
function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function listed(text: string): string[] {
  return text
    .split(/[\s,]+/)
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

export function typedFrom(told: PoolSettings): Typed {
  const settings = wholeSettings(told);
  return {
    driver: settings.driver,
    command: settings.command.join('\n'),
    image: settings.image ?? '',
    namespace: settings.namespace ?? '',
    url: settings.url ?? '',
    capabilities: settings.capabilities.join(', '),
    products: settings.products.join(', '),
    seats: String(settings.seats),
    min: String(settings.min),
    max: String(settings.max),
    warm: String(settings.warm),
    idle: timeText(settings.idleMs),
    startTimeout: timeText(settings.startTimeoutMs),
    cost: settings.costUsdPerHour == null ? '' : String(settings.costUsdPerHour),
    chargeTo: settings.chargeTo ?? '',
    args: settings.args.join('\n'),
  };
}

const MOST_TIME = 7 * 86_400_000;
const NUMBER = /^\d{1,6}$/;
const DOLLARS = /^\d{1,7}(\.\d{1,6})?$/;
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,38}[A-Za-z0-9])?$/;

/// What can be said without the coordinator, which has the last word.
export function errorsOf(typed: Typed): Errors {
  const errors: Errors = {};
  const number = (field: 'seats' | 'min' | 'max' | 'warm', least: number) => {
    const text = typed[field].trim();
    if (!NUMBER.test(text) || Number(text) < least) errors[field] = `Enter a whole number from ${least}`;
  };
  number('seats', 1);
  for (const field of ['min', 'max', 'warm'] as const) number(field, 0);
  for (const field of ['min', 'warm'] as const) {
    if (!errors[field] && !errors.max && Number(typed[field]) > Number(typed.max)) {
      errors[field] = `Enter at most ${typed.max.trim()}, as there are never more factories`;
    }
  }
  for (const field of ['idle', 'startTimeout'] as const) {
    const millis = parseTime(typed[field]);
    if (millis === undefined || millis < 1_000 || millis > MOST_TIME) {
      errors[field] = 'Enter a time from 1s to 7d, such as 90s, 10m or 1h30m';
    }
  }
  const cost = typed.cost.trim();
  if (cost !== '' && !DOLLARS.test(cost)) errors.cost = 'Enter dollars such as 2.50, or leave it empty';
  if (typed.chargeTo.trim() !== '' && cost === '') {
    errors.chargeTo = 'Without a cost per hour there is nothing to charge';
  }
  if (typed.driver === 'command' && lines(typed.command).length === 0) {
    errors.command = 'Enter the program that starts and stops the factories';
  }
  if (typed.driver === 'kubernetes' && typed.image.trim() === '') {
    errors.image = 'Enter the image of the factory';
  }
  return errors;
}

export function nameError(name: string, taken: readonly string[]): string | undefined {
  if (!NAME.test(name)) return 'Enter letters, digits, dots and dashes, 40 at most';
  return taken.includes(name) ? 'There is a pool of this name; change that one on its page' : undefined;
}

/// Everything, since the API replaces the settings as a whole. Another driver does without what the one before needed.
export function settingsOf(typed: Typed, base: PoolSettings): PoolSettings {
  const text = (field: Field) => typed[field].trim() || null;
  const driver = wordIn(POOL_DRIVER, typed.driver) ?? base.driver;
  const inKubernetes = driver === 'kubernetes';
  return {
    ...wholeSettings(base),
    driver,
    command: driver === 'command' ? lines(typed.command) : [],
    image: inKubernetes ? text('image') : null,
    namespace: inKubernetes ? text('namespace') : null,
    url: text('url'),
    capabilities: listed(typed.capabilities),
    products: listed(typed.products),
    seats: Number(typed.seats),
    min: Number(typed.min),
    max: Number(typed.max),
    warm: Number(typed.warm),
    idleMs: parseTime(typed.idle) ?? base.idleMs,
    startTimeoutMs: parseTime(typed.startTimeout) ?? base.startTimeoutMs,
    costUsdPerHour: typed.cost.trim() === '' ? null : Number(typed.cost),
    chargeTo: text('chargeTo'),
    args: lines(typed.args),
  };
}

/// A pause is not in the form and does not concern it.
export function sameSettings(a: PoolSettings, b: PoolSettings): boolean {
  const [x, y] = [typedFrom(a), typedFrom(b)];
  return FIELDS.every((field) => x[field] === y[field]);
}

/// What `giga pool set` needs to hear to get from one to the other; it leaves what it does not name as it is. Nothing where
/// something is taken away that its options can only replace.
export function commandOf(name: string, next: PoolSettings, before: PoolSettings): string | undefined {
  const [now, then] = [typedFrom(next), typedFrom(before)];
  const keptDriver = next.driver === before.driver;
  const words: string[] = [];
  let cannot = false;
  const option = (field: Field, flag: string, values: (string | null)[]) => {
    const isGone = !keptDriver && (field === 'command' || field === 'image' || field === 'namespace');
    if (now[field] === (isGone ? '' : then[field])) return;
    const given = values.filter((value) => value !== null);
    if (given.length === 0) cannot = true;
    for (const value of given) words.push(`--${flag} ${shellWord(value)}`);
  };
  option('driver', 'driver', [next.driver]);
  option('command', 'command', next.command);
  option('image', 'image', [next.image]);
  option('namespace', 'namespace', [next.namespace]);
  option('url', 'coordinator-url', [next.url]);
  option('capabilities', 'capability', next.capabilities);
  option('products', 'products', next.products.length === 0 ? [] : [next.products.join(',')]);
  for (const field of ['seats', 'min', 'max', 'warm'] as const) option(field, field, [String(next[field])]);
  option('idle', 'idle', [now.idle]);
  option('startTimeout', 'start-timeout', [now.startTimeout]);
  option('cost', 'cost-per-hour', [now.cost === '' ? null : now.cost]);
  option('chargeTo', 'charge-to', [next.chargeTo ?? 'none']);
  if (now.args !== then.args) {
    if (next.args.length === 0) cannot = true;
    else words.push(`-- ${next.args.map(shellWord).join(' ')}`);
  }
  return cannot ? undefined : ['giga pool set', shellWord(name), ...words].join(' ');
}

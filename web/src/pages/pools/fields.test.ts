import { expect, test } from 'vitest';
import {
  commandOf,
  DEFAULTS,
  errorsOf,
  nameError,
  parseTime,
  settingsOf,
  timeText,
  typedFrom,
} from './fields';

const typed = typedFrom(DEFAULTS);

test('times are written as the command line reads them', () => {
  for (const [text, millis] of [
    ['90s', 90_000],
    ['5m', 300_000],
    ['1h30m', 5_400_000],
    ['7d', 604_800_000],
    ['1500ms', 1_500],
  ] as const) {
    expect(parseTime(text)).toBe(millis);
    expect(parseTime(timeText(millis))).toBe(millis);
  }
  expect(timeText(90_000)).toBe('1m30s');
  for (const text of ['', '5', 'm', '5 m', '-5m', '1.5h']) expect(parseTime(text)).toBeUndefined();
});

test('what is typed comes back as it was set', () => {
  const settings = {
    ...DEFAULTS,
    driver: 'command' as const,
    command: ['./gpu vm.sh', 'up'],
    capabilities: ['gpu:a100=1', 'os:linux'],
    products: ['demo'],
    costUsdPerHour: 2.5,
    chargeTo: 'demo',
    args: ['--repos', '/srv/my code'],
    paused: true,
  };
  expect(settingsOf(typedFrom(settings), settings)).toEqual(settings);
});

test('another driver does without what the one before needed', () => {
  const before = { ...DEFAULTS, driver: 'command' as const, command: ['./vm.sh'] };
  const next = settingsOf({ ...typedFrom(before), driver: 'keda' }, before);
  expect(next.command).toEqual([]);
  expect(commandOf('gpu', next, before)).toBe('giga pool set gpu --driver keda');
});

test('what the coordinator would refuse is said beside the field', () => {
  expect(errorsOf(typed)).toEqual({});
  expect(Object.keys(errorsOf({ ...typed, seats: '0', max: 'x', idle: '8d', cost: '-1' }))).toEqual([
    'seats',
    'max',
    'idle',
    'cost',
  ]);
  expect(errorsOf({ ...typed, min: '2', max: '1' }).min).toContain('at most 1');
  expect(errorsOf({ ...typed, warm: '2', max: '1' }).warm).toContain('at most 1');
  expect(errorsOf({ ...typed, chargeTo: 'demo' }).chargeTo).toContain('cost per hour');
  expect(errorsOf({ ...typed, driver: 'command' }).command).toBeTruthy();
  expect(errorsOf({ ...typed, driver: 'kubernetes' }).image).toBeTruthy();
});

test('a new pool has a name of its own', () => {
  expect(nameError('gpu-1', ['local'])).toBeUndefined();
  expect(nameError('local', ['local'])).toContain('There is a pool');
  for (const name of ['', 'a b', '-x', 'x'.repeat(41)]) expect(nameError(name, [])).toContain('letters');
});

test('the command names what changes and nothing else', () => {
  const next = settingsOf({ ...typed, max: '4', seats: '2', idle: '10m', args: '--repos\n~/code' }, DEFAULTS);
  expect(commandOf('local', next, DEFAULTS)).toBe(
    "giga pool set local --seats 2 --max 4 --idle 10m -- --repos '~/code'",
  );
  const gpu = { ...typed, driver: 'command', command: './vm.sh\nup', capabilities: 'gpu:a100=1, os:linux' };
  const paid = { ...gpu, cost: '2.50', chargeTo: 'demo', products: 'demo other' };
  expect(commandOf('gpu', settingsOf(paid, DEFAULTS), DEFAULTS)).toBe(
    'giga pool set gpu --driver command --command ./vm.sh --command up --capability gpu:a100=1 --capability os:linux --products demo,other --cost-per-hour 2.5 --charge-to demo',
  );
});

test('where the command can only replace, there is none that takes away', () => {
  const before = { ...DEFAULTS, products: ['demo'], costUsdPerHour: 1, chargeTo: 'demo' };
  const without = (more: Partial<typeof typed>) =>
    commandOf('gpu', settingsOf({ ...typedFrom(before), ...more }, before), before);
  expect(without({ chargeTo: '' })).toBe('giga pool set gpu --charge-to none');
  expect(without({ products: '' })).toBeUndefined();
  expect(without({ cost: '', chargeTo: '' })).toBeUndefined();
});

test('what the coordinator leaves out is empty', () => {
  const { command, args, capabilities, products, image, chargeTo, ...told } = DEFAULTS;
  expect(typedFrom(told as typeof DEFAULTS)).toEqual(typed);
  expect(settingsOf(typed, told as typeof DEFAULTS)).toEqual(DEFAULTS);
});

import { expect, test } from 'vitest';
import { member, pool } from '../../test/things';
import { DEFAULTS } from './fields';
import { memberWord, partsInWords, partsOf, poolByFactory, poolCommand, settingsInWords } from './pools';

test('a factory of a pool is called what the command line calls it', () => {
  expect(memberWord(member('a'))).toBe('running');
  expect(memberWord(member('a', { live: false }))).toBe('offline');
  expect(memberWord(member('a', { draining: true, live: false }))).toBe('draining');
  expect(memberWord(member('a', { state: 'starting', live: false }))).toBe('starting');
  expect(memberWord(member('a', { state: 'stopping', draining: true }))).toBe('stopping');
});

test('the bar shows the factories in the order of their lives, against the most', () => {
  const members = [
    member('c', { state: 'stopping' }),
    member('a', { state: 'starting', live: false }),
    member('b'),
    member('d'),
  ];
  const of = pool({ members, settings: { ...DEFAULTS, max: 8 } });
  expect(partsOf(of)).toEqual([
    { word: 'starting', count: 1, share: 0.125 },
    { word: 'running', count: 2, share: 0.25 },
    { word: 'stopping', count: 1, share: 0.125 },
  ]);
  expect(partsInWords(of)).toBe('1 starting, 2 running, 1 stopping; 8 at most');
  expect(partsInWords(pool())).toBe('none; 4 at most');
});

test('more factories than it may have fill the bar and no more', () => {
  const of = pool({ members: [member('a'), member('b')], settings: { ...DEFAULTS, max: 0 } });
  expect(partsOf(of).map(({ share }) => share)).toEqual([1]);
  expect(partsOf(pool({ settings: { ...DEFAULTS, max: 0 } }))).toEqual([]);
});

test('settings are told in words, and what is not set is not told', () => {
  const plain = new Map(settingsInWords(DEFAULTS));
  expect([...plain.keys()]).toEqual(['Driver', 'Factories', 'Seats', 'Idle', 'Start', 'Products']);
  expect(plain.get('Idle')).toBe('one without work for 5 min leaves');
  const { products, command, args, capabilities, ...told } = DEFAULTS;
  expect(settingsInWords(told as typeof DEFAULTS)).toEqual([...plain]);
  const more = { min: 1, max: 8, warm: 2, seats: 2, costUsdPerHour: 2.5, chargeTo: 'demo' };
  const rich = new Map(settingsInWords({ ...DEFAULTS, ...more, command: ['./gpu vm.sh', 'up'] }));
  expect(rich.get('Factories')).toBe('1 to 8, 2 more than work');
  expect(rich.get('Seats')).toBe('2 jobs at a time on each');
  expect(rich.get('Cost')).toBe('$2.50 an hour each, paid by demo');
  expect(rich.get('Command')).toBe("'./gpu vm.sh' up");
});

test('a factory knows its pool', () => {
  const pools = [pool({ members: [member('gpu-1')] }), pool({ name: 'local', members: [member('local-1')] })];
  const of = poolByFactory(pools);
  expect(of.get('gpu-1')).toBe('gpu');
  expect(of.get('local-1')).toBe('local');
  expect(of.get('mac-1')).toBeUndefined();
  expect(poolCommand('show', 'gpu')).toBe('giga pool show gpu');
});

import { expect, test } from 'vitest';
import type { Account } from '../../api/types';
import { inOrder } from './accounts';

const account = (engine: string, state: Account['state']): Account => ({
  account: `${engine}-1`,
  engines: [engine],
  state,
  factories: ['mac-1'],
  waiting: 0,
});

test('what needs somebody comes first', () => {
  const all = [
    account('codex', 'open'),
    account('gemini', 'out_of_quota'),
    account('claude', 'open'),
    account('opencode', 'signed_out'),
  ];
  expect(inOrder(all).map((one) => one.engines[0])).toEqual(['opencode', 'gemini', 'claude', 'codex']);
});

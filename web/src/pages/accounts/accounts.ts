// How accounts are listed.

import type { Account } from '../../api/types';
import { ACCOUNT_STATE, wordsOf } from '../../api/vocabulary';

/// Those that need somebody first: signed out, then out of quota, then the open ones; each by engine.
export function inOrder(accounts: readonly Account[]): Account[] {
  const worst = wordsOf(ACCOUNT_STATE).reverse();
  const place = (account: Account) => worst.indexOf(account.state);
  const name = (account: Account) => `${account.engines.join(' ')} ${account.account}`;
  return [...accounts].sort((a, b) => place(a) - place(b) || name(a).localeCompare(name(b)));
}

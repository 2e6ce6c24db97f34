import { Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { accountsQuery } from '../../api/queries';
import type { Account } from '../../api/types';
import { ACCOUNT_STATE } from '../../api/vocabulary';
import { Ago } from '../../ui/Ago';
import { plural } from '../../ui/format';
import { AnchorLink } from '../../ui/links';
import { PageHead, Panel } from '../../ui/Panel';
import { Empty, Loading, ProblemAlert } from '../../ui/States';
import { visible } from '../../ui/visible';
import classes from './Accounts.module.css';
import { inOrder } from './accounts';

/// The accounts that engines are signed in with; with one in the address, that one alone.
export function AccountsPage() {
  const { account } = useParams({ strict: false });
  const query = useQuery(accountsQuery());
  const command = account ? `giga account show ${account}` : 'giga account list';
  const shown = inOrder(query.data?.accounts ?? []).filter((one) => !account || one.account === account);
  return (
    <Stack gap="md">
      <PageHead title="Accounts" command={command} />
      {query.isError && <ProblemAlert error={query.error} retry={() => void query.refetch()} />}
      {query.isPending && <Loading what="accounts" />}
      {query.data && shown.length === 0 && (
        <Empty title={account ? 'No such account' : 'No accounts'}>
          <p>Accounts come with the engines of factories. A factory reports them with its heartbeats.</p>
        </Empty>
      )}
      {shown.map((one) => (
        <AccountPanel key={one.account} account={one} />
      ))}
    </Stack>
  );
}

function AccountPanel({ account }: { account: Account }) {
  const state = ACCOUNT_STATE[account.state];
  return (
    <Panel title={`${visible(account.engines.join(', '))} · ${account.account}`}>
      <dl className={classes.facts}>
        <dt>State</dt>
        <dd data-tone={state.tone} className={classes.state}>
          {state.label}
          {account.until && (
            <>
              {', opens '}
              <Ago at={account.until} />
            </>
          )}
        </dd>
        <dt>Factories</dt>
        <dd>{visible(account.factories.join(', '))}</dd>
        {(account.windows ?? []).map((window) => (
          <Window key={window.name} name={window.name} used={window.usedPercent} resets={window.resetsAt} />
        ))}
        <dt>Waiting for it</dt>
        <dd>
          {account.waiting === 0 ? 'no jobs' : plural(account.waiting, 'job')}
          {(account.waitingJobs ?? []).map((id) => (
            <AnchorLink key={id} to="/jobs/$id" params={{ id }} search={{}} size="xs" className={classes.job}>
              {id}
            </AnchorLink>
          ))}
        </dd>
      </dl>
    </Panel>
  );
}

/// What a provider counts by, as far as the engine says.
function Window({ name, used, resets }: { name: string; used?: number | null; resets?: string | null }) {
  return (
    <>
      <dt>{visible(name.replaceAll('_', ' '))}</dt>
      <dd>
        {used == null ? 'used, how much is not known' : `${used} % used`}
        {resets && (
          <>
            {', resets '}
            <Ago at={resets} />
          </>
        )}
      </dd>
    </>
  );
}

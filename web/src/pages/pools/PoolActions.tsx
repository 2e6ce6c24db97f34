// Pausing, resuming and removing a pool. Each asks first.

import { useQueryClient } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { keys, poolQuery } from '../../api/queries';
import type { Pool } from '../../api/types';
import { ActionButton } from '../../ui/Confirm';
import { plural } from '../../ui/format';
import { Icon } from '../../ui/Icon';
import { poolCommand } from './pools';
import { useMayPools } from './useMayPools';

export function PoolSwitch({ pool }: { pool: Pool }) {
  const client = useQueryClient();
  const everyProduct = useMayPools('worker');
  const { name } = pool;
  const { paused } = pool.settings;
  const path = { params: { path: { name } } };
  const [verb, label] = paused ? (['resume', 'Resume'] as const) : (['pause', 'Pause'] as const);
  const run = async () => {
    const call = paused
      ? api.POST('/api/fleet/pools/{name}/resume', path)
      : api.POST('/api/fleet/pools/{name}/pause', path);
    client.setQueryData(poolQuery(name).queryKey, await answer(call));
    await client.invalidateQueries({ queryKey: keys.pools });
  };
  const text = paused
    ? 'It starts factories again while jobs wait for them.'
    : 'It starts no more factories until it is resumed. Those that there are go on, and leave when they are idle.';
  return (
    <ActionButton
      key={verb}
      label={label}
      aria-label={`${label} ${name}`}
      role="operator"
      disabled={!everyProduct}
      leftSection={<Icon name={paused ? 'play' : 'pause'} size={12} />}
      done={`${name} was ${verb}d`}
      command={poolCommand(verb, name)}
      run={run}
      confirm={{ title: `${label} ${name}?`, text, yes: label }}
    />
  );
}

export function RemoveButton({ pool, onRemoved }: { pool: Pool; onRemoved: () => void }) {
  const client = useQueryClient();
  const everyProduct = useMayPools('worker');
  const { name, members } = pool;
  const run = async () => {
    await answer(api.DELETE('/api/fleet/pools/{name}', { params: { path: { name } } }));
    onRemoved();
    client.removeQueries({ queryKey: keys.pool(name) });
    await client.invalidateQueries({ queryKey: keys.pools });
  };
  const text =
    members.length === 0
      ? 'Its settings are lost, and its credentials are revoked. Jobs that only it could run wait.'
      : `It still has ${plural(members.length, 'factory', 'factories')}, so this will be refused. Set “At most” to 0 and wait until they have left.`;
  return (
    <ActionButton
      label="Remove…"
      aria-label={`Remove… ${name}`}
      role="admin"
      disabled={!everyProduct}
      color="red"
      done={`${name} was removed`}
      command={poolCommand('remove', name)}
      run={run}
      confirm={{ title: `Remove ${name}?`, text, yes: 'Remove', danger: true }}
    />
  );
}

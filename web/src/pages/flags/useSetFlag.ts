import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { keys } from '../../api/queries';
import { tellDone, tellProblem, useConfirm } from '../../ui/Confirm';
import { fieldText, flagCommand, isDelivery, loss, MODES } from './takes';

/// Sets a flag, or takes it back with `null`. What changes how jobs reach factories, or deletes something, asks first and
/// says what it does.
export function useSetFlag() {
  const client = useQueryClient();
  const ask = useConfirm();
  const [busy, setBusy] = useState(false);
  const set = async (name: string, value: unknown, becomes: unknown, before: unknown): Promise<boolean> => {
    const word = fieldText(becomes);
    if (isDelivery(name)) {
      const whom =
        name === 'delivery' ? 'every factory without a mode of its own' : name.slice('delivery.'.length);
      const yes = await ask({
        title: `Deliver jobs by ${word}?`,
        text: `For ${whom}. ${MODES[word] ?? ''} It takes effect with the next heartbeat and touches nothing that runs.`,
        yes: `Deliver by ${word}`,
        command: flagCommand(name, value),
      });
      if (!yes) return false;
    }
    const lost = loss(name, before, becomes);
    if (lost) {
      const question = {
        ...lost,
        yes: 'Delete what is older',
        danger: true,
        command: flagCommand(name, value),
      };
      if (!(await ask(question))) return false;
    }
    setBusy(true);
    try {
      await answer(api.PUT('/api/fleet/flags/{name}', { params: { path: { name } }, body: { value } }));
      tellDone(value === null ? `${name} is ${word} again, as by default` : `${name} is ${word}`);
      await client.invalidateQueries({ queryKey: keys.flags });
      return true;
    } catch (error) {
      tellProblem(`Setting ${name} did not work`, error);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { set, busy };
}

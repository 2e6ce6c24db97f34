import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { keys } from '../../api/queries';
import { notifyDone, notifyProblem, useConfirm } from '../../ui/Confirm';
import { deliveryAbout, fieldText, flagCommand, isDelivery, loss } from './takes';

/// Sets a flag, or resets it with `null`. Changes to the delivery, and those that delete something, ask first.
export function useSetFlag() {
  const client = useQueryClient();
  const ask = useConfirm();
  const [busy, setBusy] = useState(false);
  const set = async (name: string, value: unknown, becomes: unknown, before: unknown): Promise<boolean> => {
    const word = fieldText(becomes);
    if (isDelivery(name)) {
      const whom = name.startsWith('delivery.')
        ? name.slice('delivery.'.length)
        : 'every factory without its own mode';
      const yes = await ask({
        title: `Deliver jobs by ${word}?`,
        text: `For ${whom}. ${deliveryAbout(word)} It takes effect with the next heartbeat and does not affect running jobs.`,
        yes: `Deliver by ${word}`,
        command: flagCommand(name, value),
      });
      if (!yes) return false;
    }
    const lost = loss(name, before, becomes);
    if (lost) {
      const question = {
        ...lost,
        yes: 'Delete older data',
        danger: true,
        command: flagCommand(name, value),
      };
      if (!(await ask(question))) return false;
    }
    setBusy(true);
    try {
      await answer(api.PUT('/api/fleet/flags/{name}', { params: { path: { name } }, body: { value } }));
      notifyDone(value === null ? `${name} is back to its default, ${word}` : `${name} is now ${word}`);
      await client.invalidateQueries({ queryKey: keys.flags });
      return true;
    } catch (error) {
      notifyProblem(`Could not set ${name}`, error);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { set, busy };
}

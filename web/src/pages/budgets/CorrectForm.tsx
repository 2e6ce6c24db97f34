import { Button, Stack, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { answer, api, newKey } from '../../api/client';
import { Problem } from '../../api/problem';
import { keys } from '../../api/queries';
import { useMay } from '../../session/useSession';
import { Hint } from '../../ui/Basics';
import { CommandLine } from '../../ui/CommandLine';
import { notifyDone, notifyProblem, useConfirm } from '../../ui/Confirm';
import { shellWord, usd } from '../../ui/format';
import { Panel } from '../../ui/Panel';
import { parseCorrection } from './fields';

/// Books an amount by hand: more, or less, was spent than the ledger says.
export function CorrectForm({ product }: { product: string }) {
  const may = useMay('admin');
  const ask = useConfirm();
  const client = useQueryClient();
  const [amount, setAmount] = useState('');
  const [reason, setReason] = useState('');
  // The same until the form changes: an answer that was lost can be asked for again, and another sum is never taken for
  // the one before.
  const [key, setKey] = useState(newKey);
  const [busy, setBusy] = useState(false);
  if (!may) return null;
  const parsed = parseCorrection(amount);
  const why = reason.trim();
  const sum = parsed.usd ?? 0;
  const command = `giga budget correct ${shellWord(product)} --usd ${parsed.usd ?? 'USD'} -m ${why ? shellWord(why) : 'REASON'}`;
  const change = (set: (text: string) => void, text: string) => {
    set(text);
    setKey(newKey());
  };
  const correct = async (event: FormEvent) => {
    event.preventDefault();
    if (parsed.error || !why || busy) return;
    const yes = await ask({
      title: `Correct the ledger of ${product}?`,
      text: `It will show ${usd(Math.abs(sum))} ${sum < 0 ? 'less' : 'more'} spent. A correction cannot be deleted, only corrected again.`,
      yes: 'Correct',
      command,
    });
    if (!yes) return;
    setBusy(true);
    try {
      await answer(
        api.POST('/api/fleet/budgets/{product}/correct', {
          params: { path: { product }, header: { 'idempotency-key': key } },
          body: { usd: sum, reason: why },
        }),
      );
      notifyDone(`The ledger of ${product} was corrected by ${usd(sum)}`);
      // What was typed since then is the next one.
      setAmount((now) => (now === amount ? '' : now));
      setReason((now) => (now === reason ? '' : now));
      setKey((now) => (now === key ? newKey() : now));
      await client.invalidateQueries({ queryKey: keys.budgets });
    } catch (error) {
      const lost = Problem.from(error).code === 'unreachable';
      notifyProblem(
        lost
          ? 'No answer, so it may or may not be booked. Submit it again unchanged: it is booked once'
          : 'Could not correct the ledger',
        error,
      );
    } finally {
      setBusy(false);
    }
  };
  return (
    <Panel title="Correct the ledger">
      <form onSubmit={(event) => void correct(event)} noValidate>
        <Stack gap="sm">
          <Hint>For charges billed separately, or refunds.</Hint>
          <TextInput
            label="Dollars"
            description="Negative if less was spent than the ledger says"
            value={amount}
            error={amount.trim() !== '' && parsed.error}
            inputMode="decimal"
            autoComplete="off"
            onChange={(event) => change(setAmount, event.currentTarget.value)}
          />
          <TextInput
            label="Reason"
            description="Shown in the history of the product"
            value={reason}
            maxLength={4_000}
            onChange={(event) => change(setReason, event.currentTarget.value)}
          />
          <CommandLine command={command} />
          <div>
            <Button
              type="submit"
              variant="default"
              loading={busy}
              disabled={parsed.error !== undefined || !why}
            >
              Correct…
            </Button>
          </div>
        </Stack>
      </form>
    </Panel>
  );
}

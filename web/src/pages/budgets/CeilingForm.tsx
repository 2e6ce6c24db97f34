import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { answer, api } from '../../api/client';
import { Problem } from '../../api/problem';
import { budgetQuery, keys } from '../../api/queries';
import type { Budget } from '../../api/types';
import { useMay } from '../../session/useSession';
import { CommandLine } from '../../ui/CommandLine';
import { tellDone } from '../../ui/Confirm';
import { Panel } from '../../ui/Panel';
import { ProblemAlert } from '../../ui/States';
import {
  changedFields,
  commandOf,
  errorsOf,
  FIELDS,
  type Field,
  rebased,
  requestOf,
  sameFigures,
  type Typed,
  typedFrom,
} from './fields';

const LABELS: Record<Field, [string, string]> = {
  day: ['A day', 'The most from 00:00 to 24:00 UTC'],
  week: ['A week', 'From Monday on'],
  month: ['A month', 'Of the calendar'],
  total: ['In total', 'The most ever'],
  job: ['A job that names no cap', 'Set aside while it runs, so that a ceiling cannot be overrun'],
};

function figure(field: Field, budget: Budget): string {
  const text = typedFrom(budget)[field];
  return `${LABELS[field][0].toLowerCase()}: ${text === '' ? 'none' : `$${text}`}`;
}

/// Replaces all ceilings, but only those that the form showed: whoever was faster is not overwritten.
export function CeilingForm({ budget }: { budget: Budget }) {
  const may = useMay('admin');
  const client = useQueryClient();
  const [base, setBase] = useState(budget);
  const [typed, setTyped] = useState<Typed>(() => typedFrom(budget));
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const errors = errorsOf(typed);
  const changed = changedFields(typed, base);
  const start = (from: Budget) => {
    setBase(from);
    setTyped(typedFrom(from));
    setProblem(undefined);
  };
  const newer = budget.rev > base.rev && !busy;
  // A pause or a resume, whoever did it, is nothing to this form.
  if (newer && sameFigures(budget, base)) setBase(budget);
  // Nobody typed anything, so the newer figures simply take their place.
  else if (newer && changed.length === 0) start(budget);
  const outdated = newer && !sameFigures(budget, base);
  const theirs = changedFields(typedFrom(budget), base);
  const product = budget.productId;
  const keepMine = () => {
    setTyped((now) => rebased(now, typedFrom(base), typedFrom(budget)));
    setBase(budget);
    setProblem(undefined);
  };

  const put = (rev: number) =>
    answer(
      api.PUT('/api/fleet/budgets/{product}', {
        params: { path: { product }, header: { 'if-match': `"rev-${rev}"` } },
        body: requestOf(typed),
      }),
    );
  // What was faster than this page may have been a pause: then it is no reason to refuse.
  const putAgain = async (error: unknown) => {
    if (Problem.from(error).code !== 'rev_mismatch') throw error;
    const now = await client.fetchQuery({ ...budgetQuery(product), staleTime: 0 });
    if (!sameFigures(now, base)) throw error;
    return put(now.rev);
  };

  const save = async (event: FormEvent) => {
    event.preventDefault();
    if (!may || busy || outdated || changed.length === 0 || Object.keys(errors).length > 0) return;
    setBusy(true);
    try {
      const saved = await put(base.rev).catch(putAgain);
      setBase(saved);
      // What was typed since it was sent is the next change.
      setTyped((now) => rebased(now, typed, typedFrom(saved)));
      setProblem(undefined);
      client.setQueryData(budgetQuery(product).queryKey, saved);
      tellDone(`The budget of ${product} is set`);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
      await client.invalidateQueries({ queryKey: keys.budgets });
    }
  };

  return (
    <Panel title="Ceilings">
      <form onSubmit={(event) => void save(event)} noValidate>
        <Stack gap="sm">
          <Text size="sm" c="dimmed">
            In dollars; an empty field is no ceiling. A job is started only while what was spent, what is set
            aside and its own cap stay within all of them.
          </Text>
          {FIELDS.map((field) => (
            <TextInput
              key={field}
              label={LABELS[field][0]}
              description={LABELS[field][1]}
              value={typed[field]}
              error={errors[field]}
              placeholder="none"
              leftSection="$"
              inputMode="decimal"
              autoComplete="off"
              readOnly={!may}
              onChange={(event) => {
                const { value } = event.currentTarget;
                setTyped((now) => ({ ...now, [field]: value }));
              }}
            />
          ))}
          {outdated && (
            <Alert color="orange" title="Somebody changed this budget meanwhile">
              <Stack gap="xs" align="flex-start">
                <Text size="sm">
                  By now it has {theirs.map((field) => figure(field, budget)).join(', ')}. What you typed is
                  not saved over that before you say so.
                </Text>
                <Group gap="xs">
                  <Button size="xs" variant="default" onClick={keepMine}>
                    Keep what I typed
                  </Button>
                  <Button size="xs" variant="default" onClick={() => start(budget)}>
                    Take the new figures
                  </Button>
                </Group>
              </Stack>
            </Alert>
          )}
          {problem !== undefined && !outdated && <ProblemAlert error={Problem.from(problem)} />}
          {!may && (
            <Text size="sm" c="dimmed">
              Setting ceilings needs the role admin.
            </Text>
          )}
          {changed.length > 0 && Object.keys(errors).length === 0 && (
            <CommandLine command={commandOf(product, typed, changed)} />
          )}
          <Group>
            <Button
              type="submit"
              loading={busy}
              disabled={!may || outdated || changed.length === 0 || Object.keys(errors).length > 0}
            >
              Set ceilings
            </Button>
            {changed.length > 0 && (
              <Button variant="default" onClick={() => start(budget)}>
                Undo
              </Button>
            )}
          </Group>
        </Stack>
      </form>
    </Panel>
  );
}

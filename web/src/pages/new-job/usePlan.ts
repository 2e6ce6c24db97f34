import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { type FieldError, Problem } from '../../api/problem';
import type { PlanAnswer } from '../../api/types';
import { useFeedEvents } from '../../live/LiveProvider';
import type { Draft } from './draft';
import { type FieldErrors, sortErrors } from './errors';
import { dryRun } from './send';

const PAUSE = 300;
/// The fleet changes too: the plan is fetched again this often, and sooner after an event.
const FLOOR = 15_000;
const SOON = 1_500;
/// While the coordinator does not answer.
const AGAIN = 3_000;

export interface Plan {
  /// The latest answer, possibly of an older draft while the next one is under way.
  answer?: PlanAnswer;
  /// Why it was refused, or why there is no answer.
  problem?: Problem;
  fields: FieldErrors;
  /// Errors that belong to no input.
  others: FieldError[];
  /// The answer is about exactly what is typed now.
  current: boolean;
  /// The answer for what is typed now, fetched if necessary.
  ask(): Promise<Outcome>;
}

export function usePlan(draft: Draft): Plan {
  const client = useQueryClient();
  const now = JSON.stringify(draft.text ?? { ...draft.form, body: '', parent: null });
  const [settled] = useDebouncedValue({ now, draft }, PAUSE);
  const lastGood = useRef<{ of: string; answer: PlanAnswer }>(undefined);
  const query = useQuery({
    // A change cancels the request before it.
    queryKey: ['plan', settled.now],
    queryFn: async ({ signal }): Promise<Outcome> => {
      const outcome = await outcomeOf(dryRun(settled.draft, signal));
      if (outcome.answer) lastGood.current = { of: settled.now, answer: outcome.answer };
      const isLost = outcome.problem?.code === 'unreachable';
      // The last answer for the same draft is better than nothing; for another draft it would be wrong.
      return isLost && lastGood.current?.of === settled.now
        ? { ...outcome, answer: lastGood.current.answer }
        : outcome;
    },
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.problem?.code === 'unreachable' ? AGAIN : FLOOR),
    staleTime: 0,
    gcTime: 10_000,
  });
  useFreshPlan();
  const { answer, problem } = query.data ?? {};
  const isLost = problem?.code === 'unreachable';
  const isOfNow = settled.now === now && query.isSuccess && !query.isPlaceholderData;
  const current = isOfNow && !isLost;
  const { fields, others } = sortErrors(problem?.errors ?? []);
  const byHand = draft.text !== null;
  return {
    answer: isLost && !isOfNow ? undefined : answer,
    problem,
    // An edited manifest has lines, and no inputs.
    fields: byHand ? {} : fields,
    others: byHand ? (problem?.errors ?? []) : others,
    current,
    ask: async () => {
      if (current) return { answer, problem };
      const outcome = await outcomeOf(dryRun(draft, new AbortController().signal));
      if (outcome.problem?.code !== 'unreachable') client.setQueryData<Outcome>(['plan', now], outcome);
      return outcome;
    },
  };
}

function useFreshPlan(): void {
  const client = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useFeedEvents((event) => {
    if (!/^(factory|budget|product|profile|flag)\./.test(event.type) || timer.current) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      void client.invalidateQueries({ queryKey: ['plan'] });
    }, SOON);
  });
}

/// A refusal is an answer too: it stays in sight while the next one is under way.
export interface Outcome {
  answer?: PlanAnswer;
  problem?: Problem;
}

export async function outcomeOf(asked: Promise<PlanAnswer>): Promise<Outcome> {
  try {
    return { answer: await asked };
  } catch (error) {
    return { problem: Problem.from(error) };
  }
}

/// `never`: no factory can run it, so it would wait. `strict`: it would be refused for that. `unknown`: no answer.
export type Verdict = 'good' | 'wrong' | 'never' | 'strict' | 'unknown';

export function verdictOf({ answer, problem }: Outcome): Verdict {
  if (problem) return problem.code === 'unreachable' ? 'unknown' : 'wrong';
  if (!answer) return 'unknown';
  if (answer.routable) return 'good';
  return answer.refused ? 'strict' : 'never';
}

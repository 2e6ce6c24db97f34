import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { Problem } from '../../api/problem';
import type { PlanAnswer } from '../../api/types';
import { useFeedEvents } from '../../live/LiveProvider';
import type { Draft } from './draft';
import { type FieldErrors, sortErrors } from './errors';
import { dryRun } from './send';

const PAUSE = 300;
/// The fleet changes too: the answer is asked for again after so long, and sooner when something happened.
const FLOOR = 15_000;
const SOON = 1_500;
/// While nobody answers.
const AGAIN = 3_000;

export interface Plan {
  /// The newest answer; of what was typed a moment ago while another is on its way.
  answer?: PlanAnswer;
  /// Why it was refused, or why nobody answers.
  problem?: Problem;
  fields: FieldErrors;
  /// What belongs to no input.
  others: { field: string; line?: number | null; message: string }[];
  /// It is about exactly what is typed now.
  current: boolean;
}

/// Refusals are answers too: they stay in sight while the next one is on its way.
interface Outcome {
  answer?: PlanAnswer;
  problem?: Problem;
}

export function usePlan(draft: Draft): Plan {
  const now = JSON.stringify(draft.text ?? { ...draft.form, body: '', parent: null });
  const [settled] = useDebouncedValue({ now, draft }, PAUSE);
  const lastGood = useRef<PlanAnswer>(undefined);
  const query = useQuery({
    // A change drops the one before: its request is given up, its answer is not wanted any more.
    queryKey: ['plan', settled.now],
    queryFn: async ({ signal }): Promise<Outcome> => {
      try {
        lastGood.current = await dryRun(settled.draft, signal);
        return { answer: lastGood.current };
      } catch (error) {
        const problem = Problem.from(error);
        return problem.code === 'unreachable' ? { problem, answer: lastGood.current } : { problem };
      }
    },
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.problem?.code === 'unreachable' ? AGAIN : FLOOR),
    staleTime: 0,
    gcTime: 10_000,
  });
  useFreshPlan();
  const { answer, problem } = query.data ?? {};
  const { fields, others } = sortErrors(problem?.errors ?? []);
  const byHand = draft.text !== null;
  return {
    answer,
    problem,
    // What was edited by hand has lines, and no inputs.
    fields: byHand ? {} : fields,
    others: byHand ? (problem?.errors ?? []) : others,
    current: settled.now === now && query.isSuccess && !query.isPlaceholderData,
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

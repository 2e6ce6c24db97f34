// What a dry run came to, and whether its draft may go off.

import { Problem } from '../../api/problem';
import type { PlanAnswer } from '../../api/types';

/// Refusals are answers too: they stay in sight while the next one is on its way.
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

/// `never`: no factory could run it, and it would wait. `strict`: nor would it be taken. `unknown`: nobody answers.
export type Verdict = 'good' | 'wrong' | 'never' | 'strict' | 'unknown';

export function verdictOf({ answer, problem }: Outcome): Verdict {
  if (problem) return problem.code === 'unreachable' ? 'unknown' : 'wrong';
  if (!answer) return 'unknown';
  if (answer.routable) return 'good';
  return answer.refused ? 'strict' : 'never';
}

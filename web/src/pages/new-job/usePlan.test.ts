import { describe, expect, it } from 'vitest';
import { Problem } from '../../api/problem';
import type { PlanAnswer } from '../../api/types';
import { outcomeOf, type Verdict, verdictOf } from './usePlan';

const answer = (part: Partial<PlanAnswer>) => part as PlanAnswer;
const unreachable = Problem.unreachable(new Error('gone'));
const invalid = Problem.of(400, { code: 'invalid_manifest', detail: 'name is missing' });

describe('what a dry run came to', () => {
  it.each<[Verdict, Parameters<typeof verdictOf>[0]]>([
    ['good', { answer: answer({ routable: true, refused: false }) }],
    ['never', { answer: answer({ routable: false, refused: false }) }],
    // As a coordinator says it that knows no such word.
    ['never', { answer: answer({ routable: false }) }],
    ['strict', { answer: answer({ routable: false, refused: true }) }],
    ['wrong', { problem: invalid }],
    ['unknown', { problem: unreachable }],
    // Whatever was said before the connection was lost.
    ['unknown', { problem: unreachable, answer: answer({ routable: true }) }],
    ['unknown', {}],
  ])('is %s', (verdict, outcome) => expect(verdictOf(outcome)).toBe(verdict));

  it('is a problem where the call fails', async () => {
    expect(await outcomeOf(Promise.reject(unreachable))).toEqual({ problem: unreachable });
    expect((await outcomeOf(Promise.reject(new TypeError('odd')))).problem?.code).toBe('page');
  });
});

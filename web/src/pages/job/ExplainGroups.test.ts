import { describe, expect, it } from 'vitest';
import type { FactoryVerdict, Remedy } from '../../api/types';
import type { BlockerCode } from '../../api/vocabulary';
import { figure } from './ExplainFactories';
import { lead, refusals, terms, widest } from './ExplainGroups';
import { callOf } from './ExplainRemedies';

const no = (factoryId: string, filter: BlockerCode, detail: string): FactoryVerdict => ({
  factoryId,
  feasible: false,
  rejectedBy: { filter, detail },
});
const yes = (factoryId: string, given: Record<string, number>): FactoryVerdict => ({
  factoryId,
  feasible: true,
  score: Object.values(given).reduce((sum, value) => sum + value, 0),
  terms: given,
});

describe('refusals', () => {
  it('are counted by reason, the most common first, and never name who could', () => {
    const many = Array.from({ length: 37 }, (_, n) => no(`w${n}`, 'capabilities', 'lacks `xcode`'));
    const groups = refusals([
      yes('ok', {}),
      no('d1', 'draining', 'is draining'),
      ...many,
      no('odd', 'capabilities', 'lacks `gpu`'),
    ]);
    expect(groups.map((group) => [group.factories.length, group.filter, group.detail])).toEqual([
      [37, 'capabilities', 'lacks `xcode`'],
      [1, 'draining', 'is draining'],
      [1, 'capabilities', 'lacks `gpu`'],
    ]);
    expect(groups[0]?.factories).toContain('w36');
  });

  it('do not mix two reasons that only read alike when put together', () => {
    expect(refusals([no('a', 'x' as never, 'y z'), no('b', 'x y' as never, 'z')])).toHaveLength(2);
  });
});

describe('terms', () => {
  it('keep their order, and unknown ones come last under their own name', () => {
    const verdict = yes('w', { constructor: 1, starvation: -1, load: 0.5, capabilityFit: 0.1 });
    expect(terms(verdict).map((term) => term.label)).toEqual([
      'fits closely',
      'has room',
      'has not waited long',
      'constructor',
    ]);
  });

  it('are measured by the longest of all, which is never nothing', () => {
    expect(widest([yes('a', { load: 0.5, starvation: -1.5 }), yes('b', { load: 1 })])).toBe(1.5);
    expect(widest([yes('a', { load: 0 })])).toBe(1);
    expect(widest([])).toBe(1);
  });

  it('say what puts one ahead', () => {
    const first = yes('a', { affinity: 0.6, load: 0.4, health: 1 });
    const second = yes('b', { affinity: 0, load: 0.9, health: 1 });
    expect(lead(first, second)).toMatchObject({ over: 'b', mostly: 'knows the repository' });
    expect(lead(first, second)?.by).toBeCloseTo(0.1);
    expect(lead(first, undefined)).toBeUndefined();
  });

  it('are figures, and never minus nothing', () => {
    expect([figure(-0.00001), figure(-1.5), figure(0.1334)]).toEqual(['0.000', '−1.500', '0.133']);
  });
});

describe('the call of a remedy', () => {
  const remedy = (call: unknown) => ({ message: 'do', call }) as unknown as Remedy;

  it('is taken as it is told', () => {
    const call = {
      method: 'POST',
      path: '/api/fleet/budgets/demo/resume',
      role: 'operator',
      everyProduct: false,
    };
    expect(callOf(remedy(call))).toEqual({ ...call, method: 'post' });
  });

  it('is not taken where it leads elsewhere, and needs an admin where nobody says who may', () => {
    for (const path of [
      'https://evil.example/api/fleet/x',
      '//evil.example/api/fleet/x',
      '/api/fleet/../../x',
      '/other',
      '/api/fleet/x?y#z',
    ]) {
      expect(callOf(remedy({ method: 'POST', path, role: 'viewer' })), path).toBeUndefined();
    }
    expect(callOf(remedy({ method: 'TRACE', path: '/api/fleet/x', role: 'viewer' }))).toBeUndefined();
    expect(callOf(remedy({ method: 'POST', path: '/api/fleet/x', role: 'god' }))?.role).toBe('admin');
    expect(callOf({ message: 'wait' })).toBeUndefined();
    expect(callOf(remedy(null))).toBeUndefined();
  });
});

import { describe, expect, it } from 'vitest';
import {
  changedFields,
  commandOf,
  errorsOf,
  parseCorrection,
  parseDollars,
  rebased,
  requestOf,
  sameFigures,
  typedFrom,
} from './fields';

const budget = { ceilings: { day: 20, week: null, month: 200 }, jobUsd: 1.5 };

describe('dollars', () => {
  it('are taken as people type them', () => {
    for (const [text, usd] of [
      ['', null],
      ['  ', null],
      ['0', 0],
      ['12', 12],
      ['$12.50', 12.5],
      [' 0.000001 ', 0.000001],
      ['1000000000', 1_000_000_000],
    ] as const) {
      expect(parseDollars(text), text).toEqual({ usd });
    }
  });

  it('are refused with what would be right', () => {
    // biome-ignore format: a table
    const wrong = [
      '-1', '1,000', '1e3', 'ten', 'Infinity', 'NaN', '0.1234567', '1000000001', '12.', '$', '1 2',
    ];
    for (const text of wrong) {
      expect(parseDollars(text).error, text).toMatch(/such as 12\.50/);
    }
  });

  it('of a correction have a sign and are not nothing', () => {
    expect(parseCorrection('-0.8')).toEqual({ usd: -0.8 });
    expect(parseCorrection('−0.8')).toEqual({ usd: -0.8 });
    expect(parseCorrection('+2')).toEqual({ usd: 2 });
    for (const text of ['', '0', '-0', '--1', 'x']) expect(parseCorrection(text).error, text).toBeDefined();
  });
});

describe('the form', () => {
  it('starts from what is set, and unchanged it changes nothing', () => {
    const typed = typedFrom(budget);
    expect(typed).toEqual({ day: '20', week: '', month: '200', total: '', job: '1.5' });
    expect(changedFields(typed, budget)).toEqual([]);
    expect(changedFields({ ...typed, day: ' 20.00 ' }, budget)).toEqual([]);
  });

  it('sends all limits, since what is left out would be none', () => {
    const typed = { ...typedFrom(budget), day: '', total: '1000' };
    expect(requestOf(typed)).toEqual({
      ceilings: { day: null, week: null, month: 200, total: 1000 },
      jobUsd: 1.5,
    });
    const changed = changedFields(typed, budget);
    expect(changed).toEqual(['day', 'total']);
    expect(commandOf('demo', typed, changed)).toBe('giga budget set demo --day none --total 1000');
  });

  it('names the field that is wrong', () => {
    const typed = { ...typedFrom(budget), week: 'lots' };
    expect(Object.keys(errorsOf(typed))).toEqual(['week']);
    expect(changedFields(typed, budget)).toEqual(['week']);
  });
});

describe('a budget that changed meanwhile', () => {
  const typed = { ...typedFrom(budget), day: '35', total: 'lots' };

  it('is the same to the form when only its revision rose', () => {
    expect(sameFigures({ ...budget }, { ceilings: { ...budget.ceilings, total: null }, jobUsd: 1.5 })).toBe(
      true,
    );
    expect(sameFigures(budget, { ...budget, jobUsd: null })).toBe(false);
    expect(sameFigures(budget, { ...budget, ceilings: { ...budget.ceilings, week: 0 } })).toBe(false);
  });

  it('keeps what was typed and takes the rest from it', () => {
    const theirs = { ceilings: { day: 50, week: 70, month: 200 }, jobUsd: 9 };
    const kept = rebased(typed, typedFrom(budget), typedFrom(theirs));
    expect(kept).toEqual({ day: '35', week: '70', month: '200', total: 'lots', job: '9' });
  });

  it('after saving, keeps only what was typed since', () => {
    const sent = { ...typedFrom(budget), day: '35.0' };
    const saved = typedFrom({ ...budget, ceilings: { ...budget.ceilings, day: 35 } });
    expect(rebased(sent, sent, saved)).toEqual(saved);
    expect(rebased({ ...sent, week: '8' }, sent, saved)).toEqual({ ...saved, week: '8' });
  });
});

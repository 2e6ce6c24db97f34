import { expect, test } from 'vitest';
import { actionOf, callOf, jobOf } from './remedies';

const id = '01J0000000000000000000000A';

function call(method: string, path: string) {
  return callOf({ message: 'x', call: { method, path, role: 'operator', everyProduct: false } });
}

test('an action on a job is known as such', () => {
  const of = (method: string, path: string) => {
    const known = call(method, path);
    return known && actionOf(known);
  };
  expect(of('POST', `/api/fleet/jobs/${id}/actions/cancel`)).toEqual({ id, name: 'cancel' });
  expect(of('POST', `/api/fleet/jobs/${id}/actions/unknown`)).toBeUndefined();
  expect(of('DELETE', `/api/fleet/jobs/${id}/actions/cancel`)).toBeUndefined();
  expect(of('POST', '/api/fleet/budgets/demo/resume')).toBeUndefined();
});

test('a command says which job it is about, and whether one should look at it', () => {
  expect(jobOf({ message: 'x', command: `giga review ${id}` })).toEqual({ id, review: true });
  expect(jobOf({ message: 'x', command: `giga job ship ${id}` })).toEqual({ id, review: false });
  expect(jobOf({ message: 'x', command: `giga job submit FILE... --parent ${id}` })).toBeUndefined();
  expect(jobOf({ message: 'x', command: 'giga budget resume demo' })).toBeUndefined();
  expect(jobOf({ message: 'x' })).toBeUndefined();
});

import { describe, expect, it } from 'vitest';
import type { DagJob } from '../api/types';
import { dag as graph, node as job } from '../test/things';
import { layOut, NODE_HEIGHT, NODE_WIDTH, type Positions, place } from './GraphLayout';

const dag = (jobs: DagJob[], outside: string[] = []) =>
  graph(
    jobs,
    outside.map((id) => ({ id, name: id, stage: 'queued' })),
  );

function overlaps(positions: Positions): string[] {
  const all = [...positions];
  const found: string[] = [];
  for (const [i, [a, p]] of all.entries()) {
    for (const [b, q] of all.slice(i + 1)) {
      if (Math.abs(p.x - q.x) < NODE_WIDTH && Math.abs(p.y - q.y) < NODE_HEIGHT) found.push(`${a} ${b}`);
    }
  }
  return found;
}

function x(positions: Positions, id: string): number {
  const at = positions.get(id);
  if (!at) throw new Error(`${id} has no place`);
  return at.x;
}

const RELEASE = [
  job('build'),
  job('lint'),
  job('test', { deps: ['build'] }),
  job('docs', { kind: 'composite', deps: ['build'] }),
  job('guide', { parentId: 'docs', depth: 2 }),
  job('links', { parentId: 'docs', depth: 2, deps: ['guide'] }),
  job('publish', { deps: ['test', 'links', 'contract'] }),
];

describe('a layout', () => {
  it('puts everything somewhere of its own, the root at 0, 0', () => {
    const places = layOut(dag(RELEASE, ['contract']));
    expect(places.size).toBe(9);
    expect(places.get('root')).toEqual({ x: 0, y: 0 });
    expect(overlaps(places)).toEqual([]);
  });

  it('puts whoever waits right of what it waits for, also over levels, and children right of their parent', () => {
    const places = layOut(dag(RELEASE, ['contract']));
    for (const [left, right] of [
      ['root', 'build'],
      ['build', 'test'],
      ['build', 'docs'],
      ['docs', 'guide'],
      ['guide', 'links'],
      ['links', 'publish'],
      ['contract', 'publish'],
    ] as const) {
      expect(x(places, left) + NODE_WIDTH, `${left} before ${right}`).toBeLessThan(x(places, right));
    }
  });

  it('puts left of the root what only the root waits for', () => {
    const alone = dag([], ['before']);
    alone.jobs = [job('root', { parentId: null, depth: 0, deps: ['before'] })];
    expect(x(layOut(alone), 'before')).toBeLessThan(-NODE_WIDTH);
  });

  it('survives what cannot be: a circle, a parent that is not shown, a dep that is not shown', () => {
    const odd = dag([
      job('a', { deps: ['b'] }),
      job('b', { deps: ['a'] }),
      job('c', { parentId: 'nobody', deps: ['gone'] }),
    ]);
    const places = layOut(odd);
    expect(places.size).toBe(4);
    expect(overlaps(places)).toEqual([]);
  });

  it('has a thousand in a shape that fits a screen, fast', () => {
    const many = Array.from({ length: 1_000 }, (_, n) =>
      job(`j${n}`, n % 7 === 0 && n > 0 ? { deps: [`j${n - 1}`] } : {}),
    );
    const began = performance.now();
    const places = layOut(dag(many));
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(overlaps(places)).toEqual([]);
    const right = Math.max(...[...places.values()].map((at) => at.x));
    const bottom = Math.max(...[...places.values()].map((at) => at.y));
    expect(right / bottom).toBeGreaterThan(0.7);
    expect(right / bottom).toBeLessThan(3.5);
  });

  it('has a thousand that all wait for each other in columns, fast', () => {
    const layered = Array.from({ length: 1_000 }, (_, n) =>
      job(`j${n}`, n < 50 ? {} : { deps: [`j${n - 50}`, `j${n - 50 - (n % 7)}`].filter((d) => d !== 'j-1') }),
    );
    const began = performance.now();
    const places = layOut(dag(layered));
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(overlaps(places)).toEqual([]);
    expect(x(places, 'j999')).toBeGreaterThan(x(places, 'j949'));
  });
});

describe('what comes later', () => {
  it('moves nothing that is there', () => {
    const before = layOut(dag(RELEASE, ['contract']));
    const after = place(
      dag(
        [...RELEASE, job('hotfix', { deps: ['build'] }), job('image', { parentId: 'docs', depth: 2 })],
        ['contract'],
      ),
      before,
    );
    for (const [id, at] of before) expect(after.get(id), id).toEqual(at);
    expect(after.size).toBe(before.size + 2);
    expect(overlaps(after)).toEqual([]);
    expect(x(after, 'hotfix')).toBeGreaterThan(x(after, 'build') + NODE_WIDTH);
    expect(x(after, 'image')).toBeGreaterThan(x(after, 'docs') + NODE_WIDTH);
  });

  it('is the same object where only stages change', () => {
    const before = layOut(dag(RELEASE, ['contract']));
    const shipped = RELEASE.map((one) => ({ ...one, stage: 'shipped' as const }));
    expect(place(dag(shipped, ['contract']), before)).toBe(before);
  });

  it('is laid out anew where most of it is new, and still from the root on', () => {
    const before = layOut(dag([]));
    const after = place(dag(RELEASE, ['contract']), before);
    expect(after.get('root')).toEqual({ x: 0, y: 0 });
    expect(overlaps(after)).toEqual([]);
  });

  it('gives up the places of what is gone', () => {
    const before = layOut(dag(RELEASE, ['contract']));
    const after = place(dag(RELEASE.slice(0, 3)), before);
    expect([...after.keys()].sort()).toEqual(['build', 'lint', 'root', 'test']);
  });

  it('fills up one after the other without ever covering anything', () => {
    let places: Positions = layOut(dag(RELEASE, ['contract']));
    const jobs = [...RELEASE];
    for (let n = 0; n < 12; n += 1) {
      jobs.push(job(`late${n}`, n % 2 ? { deps: [`late${n - 1}`] } : {}));
      places = place(dag(jobs, ['contract']), places);
      expect(overlaps(places), `after ${n}`).toEqual([]);
    }
  });
});

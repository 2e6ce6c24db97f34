import { describe, expect, it } from 'vitest';
import type { Dag } from '../api/types';
import { dag, node as job } from '../test/things';
import { layOut, shapeOf } from './GraphLayout';
import { linesOf, NodeKeeper } from './GraphModel';
import { listRows } from './GraphRows';

describe('lines', () => {
  const lines = (given: Dag) =>
    linesOf(given, shapeOf(given)).lines.map(({ id, kind, done }) => `${id} ${kind}${done ? ' done' : ''}`);

  it('are deps, whole or dashed, and lead from parents to those who wait for no sibling', () => {
    const given = dag([
      job('a', { stage: 'shipped' }),
      job('b', { deps: ['a'] }),
      job('c', { deps: ['a', 'b'], depsMode: 'any' }),
    ]);
    expect(lines(given)).toEqual(['a>b all done', 'a>c any done', 'b>c any', 'root/a child']);
  });

  it('are not drawn again for what children inherit from their composite', () => {
    const given = dag([
      job('a'),
      job('docs', { kind: 'composite', deps: ['a'] }),
      job('page', { parentId: 'docs', deps: ['a'] }),
    ]);
    expect(lines(given)).toEqual(['a>docs all', 'root/a child', 'docs/page child']);
  });

  it('become one frame where there are too many children', () => {
    const given = dag(Array.from({ length: 100 }, (_, n) => job(`j${n}`)));
    const { lines: drawn, framed } = linesOf(given, shapeOf(given));
    expect(drawn).toEqual([]);
    expect(framed).toEqual(['root']);
    const { nodes } = new NodeKeeper().model(given, layOut(given), undefined);
    const frame = nodes.find((node) => node.type === 'frame');
    const inside = nodes.filter((node) => node.type === 'job' && node.id !== 'root');
    for (const { position, width, height } of inside) {
      expect(position.x).toBeGreaterThan(frame?.position.x ?? Infinity);
      expect(position.y + height).toBeLessThan((frame?.position.y ?? 0) + (frame?.height ?? 0));
      expect(position.x + width).toBeLessThan((frame?.position.x ?? 0) + (frame?.width ?? 0));
    }
  });
});

describe('nodes', () => {
  it('are the same objects until something about their job changes', () => {
    const keeper = new NodeKeeper();
    const first = dag([job('a'), job('b')]);
    const places = layOut(first);
    const before = keeper.model(first, places, undefined).nodes;
    const next = dag([job('a'), job('b', { stage: 'building', factoryId: 'w1' })]);
    const after = keeper.model(next, places, undefined).nodes;
    expect(after[1]).toBe(before[1]);
    expect(after[2]).not.toBe(before[2]);
    expect(after[2]?.data).toMatchObject({ stage: 'building', factory: 'w1' });
  });

  it('tell progress only where there is something below', () => {
    const progress = { total: 1, shipped: 0, percent: 0, spentUsd: 0, byStage: {} };
    const given = dag([job('a', { progress })]);
    const { nodes } = new NodeKeeper().model(given, layOut(given), 'a');
    expect(nodes[0]?.data.progress).toEqual({ total: 3, shipped: 1, percent: 33 });
    expect(nodes[1]?.data.progress).toBeUndefined();
    expect(nodes[1]?.data.selected).toBe(true);
  });
});

describe('the list', () => {
  it('has every job under its parent, says what it waits for by name, and ends with what is outside', () => {
    const given = dag(
      [
        job('a'),
        job('docs', { kind: 'composite' }),
        job('b', { deps: ['a', 'out'], depsMode: 'any', failure: { reason: 'crash', detail: 'exit 1' } }),
        job('page', { parentId: 'docs', depth: 2, deps: ['a', 'b', 'docs', 'out'] }),
      ],
      [{ id: 'out', name: 'the contract', stage: 'queued' }],
    );
    const rows = listRows(given);
    expect(rows.map((row) => `${'  '.repeat(row.depth)}${row.name}`)).toEqual([
      'ROOT',
      '  A',
      '  DOCS',
      '    PAGE',
      '  B',
      'the contract',
    ]);
    expect(rows.map((row) => row.waitsFor)).toEqual([
      '',
      '',
      '',
      'all of A, B, DOCS and 1 more',
      'any of A, the contract',
      '',
    ]);
    expect(rows[4]?.failure).toBe('Crashed: exit 1');
    expect(rows[0]?.progress).toBe('1/3 shipped');
  });
});

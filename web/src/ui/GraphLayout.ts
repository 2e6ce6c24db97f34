// The position of each job in a graph. A parent is left of its children, a job is right of its dependencies.
//
// What is on the screen does not move: later jobs are put into free places, and everything is laid out again only on request
// or when most jobs are new. The root is at 0, 0 in every layout.

import { layout as dagre, Graph } from '@dagrejs/dagre';
import type { Dag } from '../api/types';

export const NODE_WIDTH = 200;
export const NODE_HEIGHT = 76;
const GAP_X = 44;
const GAP_Y = 20;
/// dagre is good and fast up to here; larger graphs are laid out in plain columns.
const DAGRE_NODES = 120;
const DAGRE_EDGES = 240;
/// Wider than high, like a screen.
const ASPECT = 1.6;

export interface Point {
  x: number;
  y: number;
}
export type Positions = ReadonlyMap<string, Point>;

/// A job with everything below it, or several next to each other.
interface Block {
  width: number;
  height: number;
  places: Map<string, Point>;
}

export interface Shape {
  root: string;
  children: Map<string, string[]>;
  parent: Map<string, string>;
  deps: [from: string, to: string][];
  /// Outside jobs that only the root waits for.
  before: string[];
}

function append<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}

export function shapeOf(dag: Dag): Shape {
  const shown = new Set(dag.jobs.map((job) => job.id));
  const parent = new Map<string, string>();
  const children = new Map<string, string[]>();
  const adopt = (child: string, of: string) => {
    parent.set(child, of);
    append(children, of, child);
  };
  for (const job of dag.jobs) {
    if (job.id === dag.rootId) continue;
    adopt(job.id, job.parentId && shown.has(job.parentId) ? job.parentId : dag.rootId);
  }
  const outside = new Set(dag.outside.map((dep) => dep.id));
  const deps = dag.jobs.flatMap((job) =>
    job.deps
      .filter((dep) => shown.has(dep) || outside.has(dep))
      .map((dep): [string, string] => [dep, job.id]),
  );
  const before: string[] = [];
  const awaitedBelow = new Set(deps.filter(([, to]) => to !== dag.rootId).map(([from]) => from));
  for (const dep of outside) {
    if (awaitedBelow.has(dep)) adopt(dep, dag.rootId);
    else before.push(dep);
  }
  return { root: dag.rootId, children, parent, deps, before };
}

/// Lays out everything.
export function layOut(dag: Dag): Positions {
  const shape = shapeOf(dag);
  const lifted = liftedDeps(shape);
  const places = blockOf(shape.root, shape, lifted).places;
  shape.before.forEach((id, row) => {
    places.set(id, { x: -(NODE_WIDTH + GAP_X), y: row * (NODE_HEIGHT + GAP_Y) });
  });
  return places;
}

/// Keeps existing positions; a new job gets a free place near its parent or its dependencies.
export function place(dag: Dag, before: Positions): Positions {
  const ids = [...dag.jobs.map((job) => job.id), ...dag.outside.map((dep) => dep.id)];
  const added = ids.filter((id) => !before.has(id));
  const kept = ids.length - added.length;
  if (added.length === 0 && kept === before.size) return before;
  if (added.length > Math.max(4, kept / 8)) return layOut(dag);
  const places = new Map<string, Point>();
  for (const id of ids) {
    const at = before.get(id);
    if (at) places.set(id, at);
  }
  const shape = shapeOf(dag);
  for (const id of added) places.set(id, freePlace(id, shape, places));
  return places;
}

function freePlace(id: string, shape: Shape, places: ReadonlyMap<string, Point>): Point {
  const awaited = shape.deps.filter(([, to]) => to === id).map(([from]) => places.get(from));
  const siblings = (shape.children.get(shape.parent.get(id) ?? '') ?? []).map((other) => places.get(other));
  const parent = places.get(shape.parent.get(id) ?? '');
  const left = [...awaited, parent].filter((at) => at !== undefined);
  const column = siblings.filter((at) => at !== undefined).map((at) => at.x);
  const right = left.length > 0 ? Math.max(...left.map((at) => at.x)) + NODE_WIDTH + GAP_X : 0;
  // In line with its siblings, unless that would be left of its dependencies.
  const x = Math.min(...column.filter((other) => other >= right), Number.POSITIVE_INFINITY);
  const at = { x: Number.isFinite(x) ? x : right, y: left[0]?.y ?? 0 };
  const taken = [...places.values()].filter((other) => Math.abs(other.x - at.x) < NODE_WIDTH + GAP_Y);
  for (const other of taken.sort((a, b) => a.y - b.y)) {
    if (Math.abs(other.y - at.y) < NODE_HEIGHT + GAP_Y / 2) at.y = other.y + NODE_HEIGHT + GAP_Y;
  }
  return at;
}

/// Dependencies between subtrees: a job that depends on a grandchild of a sibling goes right of that sibling.
function liftedDeps(shape: Shape): Map<string, [string, string][]> {
  const above = (id: string): string[] => {
    const path = [id];
    for (let at = shape.parent.get(id); at !== undefined; at = shape.parent.get(at)) path.push(at);
    return path.reverse();
  };
  const lifted = new Map<string, [string, string][]>();
  const seen = new Set<string>();
  for (const [from, to] of shape.deps) {
    const [a, b] = [above(from), above(to)];
    let fork = 0;
    while (fork < a.length && a[fork] === b[fork]) fork += 1;
    const [left, right, common] = [a[fork], b[fork], a[fork - 1]];
    if (left === undefined || right === undefined || common === undefined) continue;
    const key = `${left} ${right}`;
    if (seen.has(key)) continue;
    seen.add(key);
    append(lifted, common, [left, right]);
  }
  return lifted;
}

function blockOf(id: string, shape: Shape, lifted: Map<string, [string, string][]>): Block {
  const places = new Map<string, Point>([[id, { x: 0, y: 0 }]]);
  const children = shape.children.get(id);
  if (!children) return { width: NODE_WIDTH, height: NODE_HEIGHT, places };
  const blocks = new Map(children.map((child) => [child, blockOf(child, shape, lifted)]));
  const below = pack(components(blocks, lifted.get(id) ?? []));
  put(below, NODE_WIDTH + GAP_X, 0, places);
  return { width: NODE_WIDTH + GAP_X + below.width, height: Math.max(NODE_HEIGHT, below.height), places };
}

function put(block: Block, dx: number, dy: number, into: Map<string, Point>): void {
  for (const [id, { x, y }] of block.places) into.set(id, { x: x + dx, y: y + dy });
}

/// Jobs that depend on each other become one block; the others stay as they are.
function components(blocks: Map<string, Block>, edges: [string, string][]): Block[] {
  const group = new Map([...blocks.keys()].map((id) => [id, id]));
  const find = (id: string): string => {
    let at = id;
    for (let up = group.get(at); up !== undefined && up !== at; up = group.get(at)) at = up;
    group.set(id, at);
    return at;
  };
  for (const [from, to] of edges) group.set(find(to), find(from));
  const members = new Map<string, string[]>();
  for (const id of blocks.keys()) append(members, find(id), id);
  return [...members.values()].map((ids) => {
    const inside = new Set(ids);
    const parts = new Map(ids.map((id) => [id, blocks.get(id) as Block]));
    const between = edges.filter(([from]) => inside.has(from));
    const only = ids.length === 1 ? blocks.get(ids[0] ?? '') : undefined;
    if (only) return only;
    return ids.length <= DAGRE_NODES && between.length <= DAGRE_EDGES
      ? byDagre(parts, between)
      : inColumns(parts, between);
  });
}

function byDagre(blocks: Map<string, Block>, edges: [string, string][]): Block {
  const graph = new Graph();
  graph.setGraph({ rankdir: 'LR', nodesep: GAP_Y, ranksep: GAP_X, ranker: 'tight-tree' });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const [id, { width, height }] of blocks) graph.setNode(id, { width, height });
  for (const [from, to] of edges) graph.setEdge(from, to);
  dagre(graph);
  const corners = new Map<string, Point>();
  for (const [id, { width, height }] of blocks) {
    const { x, y } = graph.node(id);
    corners.set(id, { x: x - width / 2, y: y - height / 2 });
  }
  return joined(blocks, corners);
}

function inColumns(blocks: Map<string, Block>, edges: [string, string][]): Block {
  const rank = ranks([...blocks.keys()], edges);
  const columns: string[][] = [];
  for (const [id, at] of rank) {
    columns[at] ??= [];
    columns[at].push(id);
  }
  const awaits = new Map<string, string[]>();
  for (const [from, to] of edges) append(awaits, to, from);
  const corners = new Map<string, Point>();
  let x = 0;
  for (const column of columns) {
    const wish = (id: string) => {
      const rows = (awaits.get(id) ?? []).map((dep) => corners.get(dep)?.y ?? 0);
      return rows.length > 0 ? rows.reduce((sum, y) => sum + y, 0) / rows.length : 0;
    };
    let y = 0;
    for (const id of column.map((id) => [wish(id), id] as const).sort((a, b) => a[0] - b[0])) {
      corners.set(id[1], { x, y });
      y += (blocks.get(id[1])?.height ?? NODE_HEIGHT) + GAP_Y;
    }
    x += Math.max(...column.map((id) => blocks.get(id)?.width ?? NODE_WIDTH)) + GAP_X;
  }
  return joined(blocks, corners);
}

/// The longest path from a job without dependencies. A cycle, which cannot happen, goes to the end.
function ranks(ids: string[], edges: [string, string][]): Map<string, number> {
  const open = new Map(ids.map((id) => [id, 0]));
  const after = new Map<string, string[]>();
  for (const [from, to] of edges) {
    open.set(to, (open.get(to) ?? 0) + 1);
    append(after, from, to);
  }
  const rank = new Map<string, number>();
  let wave = ids.filter((id) => open.get(id) === 0);
  for (let at = 0; wave.length > 0; at += 1) {
    const next: string[] = [];
    for (const id of wave) {
      rank.set(id, at);
      for (const to of after.get(id) ?? []) {
        const left = (open.get(to) ?? 0) - 1;
        open.set(to, left);
        if (left === 0) next.push(to);
      }
    }
    wave = next;
  }
  const end = Math.max(-1, ...rank.values()) + 1;
  for (const id of ids) if (!rank.has(id)) rank.set(id, end);
  return rank;
}

/// Moved so that its corner is at 0, 0.
function joined(blocks: Map<string, Block>, corners: Map<string, Point>): Block {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [id, block] of blocks) {
    const { x, y } = corners.get(id) ?? { x: 0, y: 0 };
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, x + block.width);
    bottom = Math.max(bottom, y + block.height);
  }
  const places = new Map<string, Point>();
  for (const [id, block] of blocks) {
    const { x, y } = corners.get(id) ?? { x: 0, y: 0 };
    put(block, x - left, y - top, places);
  }
  return { width: right - left, height: bottom - top, places };
}

/// Packs blocks row by row, in order, into a shape that fits a screen.
function pack(blocks: Block[]): Block {
  const area = blocks.reduce((sum, { width, height }) => sum + (width + GAP_X) * (height + GAP_Y), 0);
  const widest = Math.max(...blocks.map(({ width }) => width));
  const most = Math.max(widest, Math.sqrt(area * ASPECT));
  // A few siblings read better as one column.
  const shelves = blocks.length > 6 ? most : widest;
  const places = new Map<string, Point>();
  let [x, y, shelf, width] = [0, 0, 0, 0];
  for (const block of blocks) {
    if (x > 0 && x + block.width > shelves) {
      y += shelf + GAP_Y;
      x = 0;
      shelf = 0;
    }
    put(block, x, y, places);
    width = Math.max(width, x + block.width);
    x += block.width + GAP_X;
    shelf = Math.max(shelf, block.height);
  }
  return { width, height: y + shelf, places };
}

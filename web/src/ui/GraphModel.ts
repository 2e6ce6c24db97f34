// A graph of jobs as nodes and lines. A node stays the same object until its job changes, so that a refresh renders only
// what is new.

import type { Dag, DagJob } from '../api/types';
import type { Stage } from '../api/vocabulary';
import { failureTitle } from './events';
import { NODE_HEIGHT, NODE_WIDTH, type Positions, type Shape, shapeOf } from './GraphLayout';
import { visible } from './visible';

/// More children than this get a frame instead of lines, which would hide everything.
const MOST_LINES = 24;
const FRAME = 14;

export type JobFacts = {
  id: string;
  name: string;
  stage: Stage;
  kind: 'job' | 'composite' | 'outside';
  factory?: string;
  attempts: number;
  failure?: string;
  progress?: { percent: number; shipped: number; total: number };
  selected: boolean;
};

export interface GraphNode {
  id: string;
  type: 'job' | 'frame';
  position: { x: number; y: number };
  width: number;
  height: number;
  data: JobFacts | Record<string, never>;
}

export interface GraphLine {
  id: string;
  source: string;
  target: string;
  kind: 'all' | 'any' | 'child';
  /// What it waits for has shipped.
  done: boolean;
}

export interface GraphModel {
  nodes: GraphNode[];
  lines: GraphLine[];
}

export function factsOf(dag: Dag, selected: string | undefined): JobFacts[] {
  const outside = dag.outside.map(
    (dep): JobFacts => ({
      ...dep,
      name: visible(dep.name),
      kind: 'outside',
      attempts: 0,
      selected: dep.id === selected,
    }),
  );
  const parents = new Set(dag.jobs.map((job) => job.parentId));
  const jobs = dag.jobs.map((job) => {
    const facts = jobFacts(job, job.id === selected);
    // Without children the stage says it all.
    return parents.has(job.id) ? facts : { ...facts, progress: undefined };
  });
  return [...jobs, ...outside];
}

function jobFacts(job: DagJob, selected: boolean): JobFacts {
  return {
    id: job.id,
    name: visible(job.name),
    stage: job.stage,
    kind: job.kind === 'composite' ? 'composite' : 'job',
    factory: job.factoryId ?? undefined,
    attempts: job.attempts,
    failure: job.failure
      ? visible(
          [failureTitle(job.failure.reason, job.failure.detail), job.failure.detail]
            .filter(Boolean)
            .join(': '),
        )
      : undefined,
    progress: job.progress
      ? { percent: job.progress.percent, shipped: job.progress.shipped, total: job.progress.total }
      : undefined,
    selected,
  };
}

export function linesOf(dag: Dag, shape: Shape): { lines: GraphLine[]; framed: string[] } {
  const jobs = new Map(dag.jobs.map((job) => [job.id, job]));
  const stages = new Map([...dag.jobs, ...dag.outside].map((job) => [job.id, job.stage]));
  const awaited = new Map(dag.jobs.map((job) => [job.id, new Set(job.deps)]));
  // Children inherit the dependencies of their group; one line to the group stands for all.
  const inherited = (source: string, target: string) =>
    awaited.get(shape.parent.get(target) ?? '')?.has(source) ?? false;
  const own = shape.deps.filter(([source, target]) => !inherited(source, target));
  const lines = own.map(
    ([source, target]): GraphLine => ({
      id: `${source}>${target}`,
      source,
      target,
      kind: jobs.get(target)?.depsMode === 'any' ? 'any' : 'all',
      done: stages.get(source) === 'shipped',
    }),
  );
  const waiting = new Set(
    shape.deps.filter(([from, to]) => shape.parent.get(from) === shape.parent.get(to)).map(([, to]) => to),
  );
  const framed: string[] = [];
  for (const [parent, children] of shape.children) {
    // A job that depends on a sibling is reached through it.
    const first = children.filter((child) => jobs.has(child) && !waiting.has(child));
    if (first.length > MOST_LINES) framed.push(parent);
    else
      for (const child of first) {
        lines.push({ id: `${parent}/${child}`, source: parent, target: child, kind: 'child', done: false });
      }
  }
  return { lines, framed };
}

/// A frame around everything below a job.
function frameOf(parent: string, { children }: Shape, positions: Positions): GraphNode | undefined {
  const open = [...(children.get(parent) ?? [])];
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    open.push(...(children.get(id) ?? []));
    const at = positions.get(id);
    if (!at) continue;
    left = Math.min(left, at.x - FRAME);
    top = Math.min(top, at.y - FRAME);
    right = Math.max(right, at.x + NODE_WIDTH + FRAME);
    bottom = Math.max(bottom, at.y + NODE_HEIGHT + FRAME);
  }
  if (left === Infinity) return undefined;
  return {
    id: `frame ${parent}`,
    type: 'frame',
    position: { x: left, y: top },
    width: right - left,
    height: bottom - top,
    data: {},
  };
}

export class NodeKeeper {
  private kept = new Map<string, { json: string; node: GraphNode }>();

  model(dag: Dag, positions: Positions, selected: string | undefined): GraphModel {
    const shape = shapeOf(dag);
    const { lines, framed } = linesOf(dag, shape);
    const next = new Map<string, { json: string; node: GraphNode }>();
    const keep = (node: GraphNode): GraphNode => {
      const json = JSON.stringify(node);
      const before = this.kept.get(node.id);
      const entry = before?.json === json ? before : { json, node };
      next.set(node.id, entry);
      return entry.node;
    };
    const frames = framed
      .map((parent) => frameOf(parent, shape, positions))
      .filter((node) => node !== undefined);
    const nodes = [
      ...frames,
      ...factsOf(dag, selected).map(
        (data): GraphNode => ({
          id: data.id,
          type: 'job',
          position: positions.get(data.id) ?? { x: 0, y: 0 },
          width: NODE_WIDTH,
          height: NODE_HEIGHT,
          data,
        }),
      ),
    ].map(keep);
    this.kept = next;
    return { nodes, lines };
  }
}

import type { Dag, DagJob } from '../api/types';
import { shapeOf } from './GraphLayout';
import { factsOf, type JobFacts } from './GraphModel';
import { visible } from './visible';

export interface ListRow extends Omit<JobFacts, 'progress' | 'selected'> {
  depth: number;
  /// Names: all of these, or any.
  waitsFor: string;
  progress?: string;
}

/// This many are named; the others are counted.
const NAMED = 3;

/// Each job under its parent, in the order of creation; jobs outside the graph come last.
export function listRows(dag: Dag): ListRow[] {
  const { children, root } = shapeOf(dag);
  const facts = new Map(factsOf(dag, undefined).map((fact) => [fact.id, fact]));
  const jobs = new Map(dag.jobs.map((job) => [job.id, job]));
  const rows: ListRow[] = [];
  const visit = (id: string, depth: number) => {
    const job = jobs.get(id);
    const fact = facts.get(id);
    if (!job || !fact) return;
    const { progress, selected: _, ...shown } = fact;
    const waitsFor = waiting(
      job.deps.map((dep) => facts.get(dep)?.name ?? dep),
      job.depsMode,
    );
    const below = progress && progress.total > 0 && children.has(id);
    rows.push({
      ...shown,
      depth,
      waitsFor,
      progress: below ? `${progress.shipped}/${progress.total} shipped` : undefined,
    });
    for (const child of children.get(id) ?? []) visit(child, depth + 1);
  };
  visit(root, 0);
  for (const dep of dag.outside) {
    rows.push({ ...dep, name: visible(dep.name), kind: 'outside', depth: 0, attempts: 0, waitsFor: '' });
  }
  return rows;
}

function waiting(names: string[], mode: DagJob['depsMode']): string {
  const [first] = names;
  if (first === undefined) return '';
  if (names.length === 1) return first;
  const shown = names.slice(0, NAMED).join(', ');
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${mode === 'any' ? 'any of' : 'all of'} ${shown}${more}`;
}

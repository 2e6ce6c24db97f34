// What the fleet can do, as choices for the form.

import type { Factory } from '../../api/types';

export interface Choice {
  value: string;
  /// Which factories have it, online ones first.
  factories: string[];
  live: number;
}

export interface FleetChoices {
  engines: Choice[];
  capabilities: Choice[];
  repos: Choice[];
  /// Online factories that take the product's jobs, and how many of them can clone repositories.
  live: number;
  canClone: number;
}

export function choicesFor(factories: Factory[], product: string): FleetChoices {
  const admitted = factories.filter(
    ({ products }) => product === '' || products.length === 0 || products.includes(product),
  );
  const live = admitted.filter((factory) => factory.live);
  const capabilities = choices(admitted, (factory) => factory.capabilities);
  const named = (prefix: string) =>
    capabilities
      .filter((choice) => choice.value.startsWith(prefix))
      .map((choice) => ({ ...choice, value: choice.value.slice(prefix.length) }));
  return {
    engines: named('engine:'),
    // Engines and repositories have their own fields.
    capabilities: capabilities.filter(
      ({ value }) => !value.startsWith('engine:') && !value.startsWith('repo:'),
    ),
    repos: choices(admitted, (factory) => factory.repos.map((repo) => repo.name)),
    live: live.length,
    canClone: live.filter((factory) => factory.canClone).length,
  };
}

/// The most common first.
function choices(factories: Factory[], of: (factory: Factory) => string[]): Choice[] {
  const found = new Map<string, Choice>();
  for (const factory of [...factories].sort((a, b) => Number(b.live) - Number(a.live))) {
    for (const value of new Set(of(factory))) {
      const choice = found.get(value) ?? { value, factories: [], live: 0 };
      choice.factories.push(factory.id);
      if (factory.live) choice.live += 1;
      found.set(value, choice);
    }
  }
  return [...found.values()].sort((a, b) => b.live - a.live || a.value.localeCompare(b.value));
}

/// Every known product that the token covers.
export function productChoices(
  mine: { everyProduct: boolean; products: string[] } | undefined,
  known: string[],
  factories: Factory[],
): string[] {
  const all = new Set([
    ...(mine?.products ?? []),
    ...known,
    ...factories.flatMap(({ products }) => products),
  ]);
  const covered = [...all].filter((product) => mine?.everyProduct || mine?.products.includes(product));
  return covered.sort((a, b) => a.localeCompare(b));
}

const NAMED = 3;

/// `on w1, w2 and 3 more`, as a hint under an input.
export function whereIs(choice: Choice | undefined): string {
  if (!choice) return '';
  const shown = choice.factories.slice(0, NAMED).join(', ');
  const more = choice.factories.length - NAMED;
  return `on ${shown}${more > 0 ? ` and ${more} more` : ''}${choice.live === 0 ? ', offline' : ''}`;
}

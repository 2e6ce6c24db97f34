// How supply and demand of a capability read.

import type { CapabilityUse } from '../../api/types';

/// How many factories are named before the rest is a number.
const NAMED = 4;

/// Somebody waits for it and no factory that takes jobs has it.
export function isMissing(known: CapabilityUse): boolean {
  return known.queued > 0 && !known.factories.some((holder) => holder.available);
}

/// `2 of 4`; nothing where a factory that has it does not count.
export function inUse(known: CapabilityUse): string {
  if (known.units == null) return '–';
  const used = known.factories.reduce((sum, holder) => sum + holder.used, 0);
  return `${used} of ${known.units}`;
}

export function askedForBy(known: CapabilityUse): string {
  return known.products.map((demand) => demand.productId).join(', ') || '–';
}

/// Those that take no jobs now say so.
export function holders(known: CapabilityUse): string {
  if (known.factories.length === 0) return 'no factory has it';
  const named = known.factories.slice(0, NAMED).map((holder) => {
    const number = holder.units == null ? '' : ` (${holder.used}/${holder.units})`;
    return `${holder.factoryId}${number}${holder.available ? '' : ', unavailable'}`;
  });
  const more = known.factories.length - named.length;
  return `${named.join('; ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/// Whether every word of a filter is found in one of the texts.
export function matchesWords(filter: string, texts: readonly string[]): boolean {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => texts.some((text) => text.toLowerCase().includes(word)));
}

/// With the id, or without it where it was there.
export function toggled(ids: ReadonlySet<string>, id: string): Set<string> {
  const next = new Set(ids);
  if (!next.delete(id)) next.add(id);
  return next;
}

/// Urgent ones first, otherwise in the given order.
export function urgentFirst<T>(things: readonly T[], urgent: (thing: T) => boolean): T[] {
  return [...things.filter(urgent), ...things.filter((thing) => !urgent(thing))];
}

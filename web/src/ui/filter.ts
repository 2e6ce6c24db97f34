/// Whether every word of a filter is found in one of the texts.
export function matchesWords(filter: string, texts: readonly string[]): boolean {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => texts.some((text) => text.toLowerCase().includes(word)));
}

/// Urgent ones first, otherwise in the given order.
export function urgentFirst<T>(things: readonly T[], urgent: (thing: T) => boolean): T[] {
  return [...things.filter(urgent), ...things.filter((thing) => !urgent(thing))];
}

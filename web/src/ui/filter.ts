/// Whether every word of a filter is found somewhere in what is said of a thing.
export function holdsWords(filter: string, said: readonly string[]): boolean {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const texts = said.map((text) => text.toLowerCase());
  return words.every((word) => texts.some((text) => text.includes(word)));
}

/// Those that need somebody first, and otherwise in the order in which they came.
export function urgentFirst<T>(things: readonly T[], urgent: (thing: T) => boolean): T[] {
  return [...things.filter(urgent), ...things.filter((thing) => !urgent(thing))];
}

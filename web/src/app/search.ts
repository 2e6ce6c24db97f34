// What stands in an address was typed by anyone: only what is expected is taken from it.

export function text(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value !== '' ? value.slice(0, 500) : undefined;
}

export function oneOf<T extends string>(value: unknown, known: readonly T[]): T | undefined {
  return known.find((word) => word === value);
}

export function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

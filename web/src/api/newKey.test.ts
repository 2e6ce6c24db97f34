import { expect, it } from 'vitest';
import { newKey } from './newKey';

it('is a key of its own, which a coordinator takes', () => {
  const keys = new Set(Array.from({ length: 100 }, newKey));
  expect(keys.size).toBe(100);
  for (const key of keys) expect(key).toMatch(/^web-[0-9a-f]{32}$/);
});

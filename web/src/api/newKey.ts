/// An idempotency key: a call whose answer was lost can be repeated with it, and is done once. Not `randomUUID`: browsers
/// have that on safe origins only.
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

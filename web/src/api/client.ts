// One typed client for the whole page. Types come from the coordinator's own OpenAPI document.

import createClient, { type Middleware } from 'openapi-fetch';
import { session } from '../session/session';
import { Problem } from './problem';
import type { paths } from './schema';

const bearer: Middleware = {
  onRequest({ request }) {
    const token = session.token();
    if (token) request.headers.set('Authorization', `Bearer ${token}`);
    return request;
  },
  onResponse({ request, response }) {
    // Only the token that was sent can have been revoked; a login attempt handles its own failure.
    const sent = request.headers.get('Authorization')?.replace(/^Bearer /, '');
    if (response.status === 401 && sent) session.end('ended', sent);
    return response;
  },
  onError({ request, error }) {
    return Problem.unreachable(error, isRead(request) ? undefined : OUTCOME_UNKNOWN);
  },
};

const OUTCOME_UNKNOWN = 'the outcome is unknown; check before you try again';

/// Changes nothing, so there is no outcome to be unsure about.
function isRead({ method, url }: Request): boolean {
  return method === 'GET' || /\/api\/fleet\/(plan|markdown)$/.test(new URL(url, location.href).pathname);
}

// `fetch` is looked up at each call, so that tests can replace it.
export const api = createClient<paths>({
  baseUrl: '/',
  fetch: (request) => globalThis.fetch(request),
  querySerializer: { array: { style: 'form', explode: false } },
});
api.use(bearer);

export interface Answered<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/// The answer, or a thrown [`Problem`] in the coordinator's own words.
export async function answer<T>(call: Promise<Answered<T>>): Promise<T> {
  let answered: Answered<T>;
  try {
    answered = await call;
  } catch (cause) {
    throw cause instanceof Problem ? cause : Problem.unreachable(cause);
  }
  if (!answered.response.ok) throw Problem.of(answered.response.status, answered.error);
  return answered.data as T;
}

/// The header that narrows a call to one product.
export function inProduct(product: string | undefined): { 'x-product-id'?: string } {
  return product ? { 'x-product-id': product } : {};
}

/// An idempotency key: a call whose answer was lost can be repeated and takes effect once. Not `randomUUID`: browsers offer
/// that on secure origins only.
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

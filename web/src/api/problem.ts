// Errors as the coordinator tells them: problem+json with a stable code and a remedy in the text.

import type { components } from './schema';

type Told = components['schemas']['Problem'];
export type FieldError = components['schemas']['FieldError'];

export class Problem extends Error {
  override readonly name = 'Problem';

  private constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly errors: FieldError[] = [],
  ) {
    super(message);
  }

  static of(status: number, body: unknown): Problem {
    if (isTold(body)) return new Problem(status, body.code, body.detail, body.errors ?? []);
    return new Problem(status, 'unknown', `the coordinator answered with status ${status}`);
  }

  /// `then` is what whoever asked can make of it: only they know whether something may have been done.
  static unreachable(cause: unknown, then?: string): Problem {
    const why = cause instanceof Error && cause.message ? ` (${cause.message})` : '';
    const text = `the coordinator cannot be reached${why}${then ? `; ${then}` : ''}`;
    return new Problem(0, 'unreachable', text);
  }

  static from(error: unknown): Problem {
    if (error instanceof Problem) return error;
    const text = error instanceof Error ? error.message : String(error);
    return new Problem(0, 'page', text);
  }
}

function isTold(body: unknown): body is Told {
  return typeof body === 'object' && body !== null && 'code' in body && 'detail' in body;
}

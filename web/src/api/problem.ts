// Errors as the coordinator reports them: problem+json with a stable code and a remedy in the text.

import type { components } from './schema';
import type { ProblemCode } from './vocabulary';

type ProblemBody = components['schemas']['Problem'];
/// The coordinator's own, and those of the page: no answer, an answer that is not a problem, or an error in the page itself.
type Code = ProblemCode | 'unreachable' | 'unknown' | 'page';
export type FieldError = components['schemas']['FieldError'];

export class Problem extends Error {
  override readonly name = 'Problem';

  private constructor(
    readonly status: number,
    readonly code: Code,
    message: string,
    readonly errors: FieldError[] = [],
  ) {
    super(message);
  }

  static of(status: number, body: unknown): Problem {
    if (isProblem(body)) return new Problem(status, body.code, body.detail, body.errors ?? []);
    return new Problem(status, 'unknown', `the coordinator returned status ${status}`);
  }

  /// `then` says what the caller can do about it: only they know whether the call may have taken effect.
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

function isProblem(body: unknown): body is ProblemBody {
  return typeof body === 'object' && body !== null && 'code' in body && 'detail' in body;
}

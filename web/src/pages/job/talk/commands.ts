// The same as a command, for every answer and message.

import type { Job, Question } from '../../../api/types';
import { shellWord } from '../../../ui/format';

export function answerCommand(
  job: Pick<Job, 'id'>,
  question: Pick<Question, 'number'>,
  text: string,
): string {
  const words = text.trim() ? shellWord(text.trim()) : 'TEXT';
  return `giga job answer ${job.id} --question ${question.number} ${words}`;
}

export function sayCommand(job: Pick<Job, 'id'>, text: string): string {
  return `giga job say ${job.id} ${text.trim() ? shellWord(text.trim()) : 'TEXT'}`;
}

import { expect, test } from 'vitest';
import { answerCommand, sayCommand } from './commands';

test('what is sent is the same as a command', () => {
  const job = { id: '01J' };
  expect(answerCommand(job, { number: 2 }, ' yes ')).toBe('giga job answer 01J --question 2 yes');
  expect(answerCommand(job, { number: 2 }, "it's $(rm)")).toBe(
    "giga job answer 01J --question 2 'it'\\''s $(rm)'",
  );
  expect(answerCommand(job, { number: 1 }, '')).toBe('giga job answer 01J --question 1 TEXT');
  expect(sayCommand(job, 'keep it short')).toBe("giga job say 01J 'keep it short'");
});

import { expect, test } from 'vitest';
import { auditCommand, auditParams, typesOf } from './filter';

test('the command and the parameters ask for the same', () => {
  const filter = { actor: ' ana ', kind: 'token.issued, flag.changed', since: '1d' };
  expect(auditCommand(filter)).toBe('giga audit --actor ana --kind token.issued,flag.changed --since 1d');
  expect(auditParams(filter, Date.parse('2026-05-02T00:00:00Z'))).toEqual({
    actor: 'ana',
    since: '2026-05-01T00:00:00.000Z',
  });
  expect(typesOf(filter.kind)).toEqual(['token.issued', 'flag.changed']);
});

test('nothing asks for nothing', () => {
  const filter = { actor: ' ', kind: ' , ', since: '' };
  expect(auditCommand(filter)).toBe('giga audit');
  expect(auditParams(filter, 0)).toEqual({ actor: undefined, since: undefined });
  expect(typesOf(filter.kind)).toBeUndefined();
});

test('what a shell would read is quoted', () => {
  expect(auditCommand({ actor: '*', kind: '', since: '' })).toBe("giga audit --actor '*'");
});

import { expect, it } from 'vitest';
import { codeParts } from './CodeText';

it('tells code from text', () => {
  expect(codeParts('lacks `xcode` and `gpu`').map(({ text, code }) => (code ? `[${text}]` : text))).toEqual([
    'lacks ',
    '[xcode]',
    ' and ',
    '[gpu]',
  ]);
  expect(codeParts('one ` alone')).toEqual([{ text: 'one ` alone', code: false, at: 0 }]);
});

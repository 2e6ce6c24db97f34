import { render } from '@testing-library/react';
import { expect, it } from 'vitest';
import { SideRows, UnifiedRows } from './DiffRows';
import type { DiffLine } from './parseDiff';

const lines: DiffLine[] = [
  { kind: 'removed', text: '// harmless', old: 1 },
  { kind: 'added', text: '// harmless\rsteal()\r', new: 1 },
  { kind: 'added', text: '// harmless\u2028steal()', new: 2 },
];

// The first is compared within, so that it comes in parts.
it.each([
  ['one under the other', UnifiedRows],
  ['side by side', SideRows],
])('%s, code behind what ends a line elsewhere is not drawn as part of a comment', (_, Rows) => {
  const { container } = render(
    <table>
      <tbody>
        <Rows lines={lines} />
      </tbody>
    </table>,
  );
  expect(container.textContent).toContain('// harmless⟨U+000D⟩steal()␍');
  expect(container.textContent).toContain('// harmless⟨U+2028⟩steal()');
});

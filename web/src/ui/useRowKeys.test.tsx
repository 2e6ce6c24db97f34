import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, it } from 'vitest';
import { useRowKeys } from './useRowKeys';

function List() {
  useRowKeys();
  return (
    <>
      <input aria-label="filter" />
      {['a', 'b', 'c'].map((name) => (
        <button type="button" key={name} data-row>
          {name}
        </button>
      ))}
    </>
  );
}

it('goes down and up, and stays at the ends', async () => {
  render(<List />);
  const user = userEvent.setup();
  const at = () => document.activeElement?.textContent;
  await user.keyboard('j');
  expect(at()).toBe('a');
  await user.keyboard('jjj');
  expect(at()).toBe('c');
  await user.keyboard('k');
  expect(at()).toBe('b');
  await user.keyboard('kkk');
  expect(at()).toBe('a');
});

it('leaves letters to whoever types', async () => {
  render(<List />);
  const user = userEvent.setup();
  await user.click(screen.getByLabelText('filter'));
  await user.keyboard('jk');
  expect((screen.getByLabelText('filter') as HTMLInputElement).value).toBe('jk');
});

import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, it, test, vi } from 'vitest';
import { type Keys, useKeys, useRowKeys } from './keys';

function Page({ keys, jumps }: { keys: Keys; jumps?: Keys }) {
  useKeys(keys, jumps);
  return (
    <main>
      <input aria-label="text" />
      <input type="checkbox" aria-label="box" />
      <select aria-label="choice" />
    </main>
  );
}

function List({ keys }: { keys: Keys }) {
  useKeys(keys);
  return null;
}

test('a key does what it is for, but not where somebody types', async () => {
  const j = vi.fn();
  const { getByLabelText } = render(<Page keys={{ j }} />);
  await userEvent.keyboard('j');
  expect(j).toHaveBeenCalledOnce();
  await userEvent.type(getByLabelText('text'), 'jj');
  getByLabelText('choice').focus();
  await userEvent.keyboard('j');
  expect(j).toHaveBeenCalledOnce();
  getByLabelText('box').focus();
  await userEvent.keyboard('j');
  expect(j).toHaveBeenCalledTimes(2);
});

test('a key with a modifier is the browser’s', async () => {
  const j = vi.fn();
  render(<Page keys={{ j }} />);
  await userEvent.keyboard('{Control>}j{/Control}{Meta>}j{/Meta}{Alt>}j{/Alt}');
  expect(j).not.toHaveBeenCalled();
});

test('keys rest while a dialog is open', async () => {
  const j = vi.fn();
  render(<Page keys={{ j }} />);
  const dialog = document.createElement('div');
  dialog.setAttribute('role', 'dialog');
  dialog.setAttribute('aria-modal', 'true');
  document.body.append(dialog);
  await userEvent.keyboard('j');
  dialog.remove();
  expect(j).not.toHaveBeenCalled();
  await userEvent.keyboard('j');
  expect(j).toHaveBeenCalledOnce();
});

test('g and a letter goes there, and the list does not take the letter for itself', async () => {
  const down = vi.fn();
  const jump = vi.fn();
  render(
    <>
      <List keys={{ j: down, g: down }} />
      <Page keys={{}} jumps={{ j: jump }} />
      <List keys={{ j: down }} />
    </>,
  );
  await userEvent.keyboard('gj');
  expect(jump).toHaveBeenCalledOnce();
  expect(down.mock.calls.length).toBe(1); // the g itself
  await userEvent.keyboard('j');
  expect(jump).toHaveBeenCalledOnce();
  expect(down.mock.calls.length).toBe(3);
});

test('another letter after g is neither a jump nor a key, and ends the waiting', async () => {
  const x = vi.fn();
  const jump = vi.fn();
  render(<Page keys={{ x }} jumps={{ j: jump }} />);
  await userEvent.keyboard('gx');
  expect(x).not.toHaveBeenCalled();
  await userEvent.keyboard('j');
  expect(jump).not.toHaveBeenCalled();
});

function Rows() {
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
  render(<Rows />);
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
  render(<Rows />);
  const user = userEvent.setup();
  await user.click(screen.getByLabelText('filter'));
  await user.keyboard('jk');
  expect((screen.getByLabelText('filter') as HTMLInputElement).value).toBe('jk');
});

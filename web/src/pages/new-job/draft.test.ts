import { beforeEach, describe, expect, it, vi } from 'vitest';
import { dropDraft, loadDraft, newDraft, saveDraft } from './draft';
import { EMPTY_FORM } from './form';

const PLACE = { owner: 'tok-1' };

beforeEach(() => sessionStorage.clear());

describe('a draft', () => {
  it('comes back as it was, with its key', () => {
    const draft = {
      ...newDraft({ ...EMPTY_FORM, name: 'x', verify: ['a', ''], deps: [{ id: 'A', name: 'a' }] }),
      text: '---\n',
    };
    saveDraft(PLACE, draft);
    expect(loadDraft(PLACE)).toEqual(draft);
  });

  it('belongs to one token and one job that it starts from', () => {
    saveDraft(PLACE, newDraft({ ...EMPTY_FORM, name: 'mine' }));
    expect(loadDraft({ owner: 'tok-2' })).toBeUndefined();
    expect(loadDraft({ ...PLACE, from: 'J' })).toBeUndefined();
    dropDraft(PLACE);
    expect(loadDraft(PLACE)).toBeUndefined();
  });

  it('is mended where an older page, or somebody, wrote something else', () => {
    const name = 'giga.draft tok-1 ';
    const odd = {
      key: 'k',
      text: 7,
      form: { name: 'x', verify: 'no', deps: [{ id: 1 }, { id: 'A', name: 'a' }], kind: 'evil', parent: 3 },
    };
    sessionStorage.setItem(name, JSON.stringify(odd));
    expect(loadDraft(PLACE)).toEqual({
      key: 'k',
      text: null,
      form: { ...EMPTY_FORM, name: 'x', deps: [{ id: 'A', name: 'a' }] },
    });
    for (const nonsense of ['', 'null', '[]', '{', '{"form":{}}', '7']) {
      sessionStorage.setItem(name, nonsense);
      expect(loadDraft(PLACE), nonsense).toBeUndefined();
    }
  });

  it('does not stop anybody from typing where nothing can be kept', () => {
    const full = () => {
      throw new DOMException('full', 'QuotaExceededError');
    };
    vi.stubGlobal('sessionStorage', { setItem: full });
    expect(saveDraft(PLACE, newDraft(EMPTY_FORM))).toBe(false);
  });
});

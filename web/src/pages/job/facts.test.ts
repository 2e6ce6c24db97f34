import { beforeEach, describe, expect, it } from 'vitest';
import type { Job, Run } from '../../api/types';
import { visible } from '../../ui/visible';
import { hasPreview } from './files/FilesPanel';
import { manifestRows } from './overview/ManifestPanel';
import { keepDraft, NO_DRAFT, readDraft, reviewCommand } from './review/ReviewForm';
import { chosenRun, webLink } from './runs/runFacts';

describe('a link that a factory told', () => {
  it.each([
    'javascript:alert(1)',
    'http://plain.example',
    'data:text/html,x',
    'https://u:p@evil.example/',
    'nonsense',
  ])('%s is not followed', (url) => expect(webLink(url)).toBeUndefined());
  it('is followed where it is https', () => {
    expect(webLink('https://github.com/org/app/pull/7')).toBe('https://github.com/org/app/pull/7');
  });
});

it('only small text is looked at in the page', () => {
  expect(hasPreview({ mediaType: 'text/plain; charset=utf-8', size: 10 })).toBe(true);
  expect(hasPreview({ mediaType: 'application/json', size: 10 })).toBe(true);
  expect(hasPreview({ mediaType: 'text/plain', size: 1e7 })).toBe(false);
  expect(hasPreview({ mediaType: 'image/svg+xml', size: 10 })).toBe(false);
  expect(hasPreview({ mediaType: 'application/octet-stream', size: 10 })).toBe(false);
});

it('characters that turn others around are written out, and those of other alphabets stay', () => {
  expect(visible('a\u202eb\u2066c')).toBe('a⟨U+202E⟩b⟨U+2066⟩c');
  expect(visible('grüße 👩‍💻 سلام')).toBe('grüße 👩‍💻 سلام');
});

it('a manifest is read without what is empty', () => {
  const rows = manifestRows({
    name: 'x',
    repo: 'hello',
    deps: [],
    budget: {},
    retry: { max: 3, backoff: '30s' },
    verify: ['a', 'b'],
    runAt: null,
  });
  expect(rows).toEqual([
    { key: 'repo', value: 'hello' },
    { key: 'retry', value: 'max: 3\nbackoff: 30s' },
    { key: 'verify', value: 'a\nb' },
  ]);
  expect(manifestRows('nonsense')).toEqual([]);
});

describe('a review that is half written', () => {
  beforeEach(() => sessionStorage.clear());
  it('is kept by job, and gone when it is sent', () => {
    keepDraft('J1', { verdict: 'request_changes', comment: 'a test' });
    expect(readDraft('J1')).toEqual({ verdict: 'request_changes', comment: 'a test' });
    expect(readDraft('J2')).toEqual(NO_DRAFT);
    keepDraft('J1', { ...NO_DRAFT, epoch: 2 });
    expect(readDraft('J1').epoch).toBe(2);
    keepDraft('J1', NO_DRAFT);
    expect(sessionStorage.length).toBe(0);
  });
  it('is nothing where what is kept is no review', () => {
    for (const kept of ['{', 'null', '7', '{"verdict":"ship","comment":7,"epoch":"x"}']) {
      sessionStorage.setItem('giga.review.J1', kept);
      expect(readDraft('J1')).toEqual(NO_DRAFT);
    }
  });
  it('is the same as a command, quoted for a shell', () => {
    const command = reviewCommand({ id: 'J1' }, { verdict: 'request_changes', comment: "it's $(rm)" }, 'ana');
    expect(command).toBe("giga review J1 --request-changes -m 'it'\\''s $(rm)' --as ana");
  });
});

it('the run that is shown is the one in the address, else the one under review, else the newest', () => {
  const runs = [3, 2, 1].map((leaseEpoch) => ({ leaseEpoch }) as Run);
  const job = { stage: 'review', result: { leaseEpoch: 2 } } as Job;
  expect(chosenRun(job, runs, 1)?.leaseEpoch).toBe(1);
  expect(chosenRun(job, runs, undefined)?.leaseEpoch).toBe(2);
  expect(chosenRun({ ...job, stage: 'shipped' }, runs, undefined)?.leaseEpoch).toBe(3);
  expect(chosenRun(job, runs, 99)?.leaseEpoch).toBe(3);
  expect(chosenRun(job, [], 1)).toBeUndefined();
});

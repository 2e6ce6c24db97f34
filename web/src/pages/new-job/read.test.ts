import { describe, expect, it } from 'vitest';
import { emit } from './emit';
import { EMPTY_FORM, type JobForm, toManifest } from './form';
import { formOfText } from './read';

const FULL: JobForm = {
  ...EMPTY_FORM,
  name: 'fix: "it"',
  product: 'demo',
  repo: 'org/app',
  engine: 'shell',
  script: '#!/bin/sh\n\necho "a: b" # c\n  indented\n',
  capabilities: ['os:linux', 'gpu'],
  priority: 'high',
  deps: [{ id: '01M7GDVVXGXDBVAT1V5VCQ8QN7', name: 'before' }],
  depsMode: 'any',
  budgetUsd: '2.5',
  budgetWall: '1h30m',
  retryMax: '0',
  verify: ['cargo test', 'a: b, [c] {d}', 'x\ny'],
  secrets: ['API_KEY', 'NPM_TOKEN=npm_token', 'DEPLOY_KEY:.ssh/id'],
  permissions: 'edit',
  askParkAfter: '5m',
  askDeadline: '2h',
  quorum: '1',
  reviewers: ['ana', 'bo, the other'],
  ship: 'auto',
  concurrencyKey: 'repo:hello, {x}',
  concurrencyLimit: '2',
  parent: { id: 'P', name: 'parent' },
  body: '---\nbody\r\n',
};

const back = (text: string, before: JobForm = EMPTY_FORM) => formOfText(text, before);

describe('a manifest back into the form', () => {
  it('is the form that it came from', () => {
    expect(back(emit(toManifest(FULL), FULL.body), FULL)).toEqual(FULL);
    const several = { ...FULL, moreRepos: ['lib', 'my docs'] };
    expect(toManifest(several).repos).toEqual(['org/app', 'lib', 'my docs']);
    expect(back(emit(toManifest(several), several.body), several)).toEqual(several);
    for (const script of ['a\nb', 'a\nb\n', 'a\nb\n\n\n', 'a\n\n  b', ' odd\nb']) {
      const form = { ...FULL, script };
      expect(back(emit(toManifest(form), ''), form)?.script, JSON.stringify(script)).toBe(script);
    }
  });

  it('takes edits along', () => {
    const text = emit(toManifest(FULL), FULL.body)
      .replace('priority: high', 'priority: low')
      .replace('repo: org/app', 'repo: "hello"');
    expect(back(text, FULL)).toEqual({ ...FULL, priority: 'low', repo: 'hello' });
    expect(back('---\nname: x\n---\nDo it.')).toEqual({ ...EMPTY_FORM, name: 'x', body: 'Do it.' });
  });

  it('is left alone where the form could not say it, or it is not certain what it says', () => {
    for (const front of [
      'name: x\nidempotencyKey: once',
      'name: x\nenigne: shell',
      'name: x\nname: y',
      'name: x # note',
      '# note\nname: x',
      'name: true',
      'name: 7',
      "name: 'x'",
      'name: >\n  x',
      'name: x\nscript: |\n    deep\n  shallow',
      'name: x\nengine: claude\nscript: kept?',
      'name: x\nbudget: {usd: {deep: 1}}',
      'name: x\nbudget:\n  usd: 2',
      'name: x\ncapabilities: [a, ]',
      'name: x\ncapabilities: [a',
      'name: x\nverify:\n- unindented',
      'name: x\nruns: "\\q"',
      'name: &a x',
    ]) {
      expect(back(`---\n${front}\n---\n`), front).toBeUndefined();
    }
    for (const text of ['', 'name: x', '---\nname: x\n', '---\r\nname: x\r\n---\r\n']) {
      expect(back(text), text).toBeUndefined();
    }
  });
});

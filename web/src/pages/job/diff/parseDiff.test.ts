import { describe, expect, it } from 'vitest';
import { pairs, within } from './pairs';
import { parseDiff, unquoted } from './parseDiff';

const CHANGE = `diff --git a/greet.sh b/greet.sh
index 1f0c..2e1a 100644
--- a/greet.sh
+++ b/greet.sh
@@ -1,3 +1,4 @@ main
 first
-echo Helo
+echo Hello
+echo again
 last
`;

describe('a change', () => {
  it('has its lines with their numbers on both sides', () => {
    const { files, added, removed, notes } = parseDiff(CHANGE);
    expect([added, removed, notes]).toEqual([2, 1, []]);
    expect(files).toHaveLength(1);
    expect(files[0]).toMatchObject({
      oldName: 'greet.sh',
      newName: 'greet.sh',
      kind: 'changed',
      binary: false,
    });
    expect(files[0]?.hunks[0]?.header).toBe('@@ -1,3 +1,4 @@ main');
    expect(files[0]?.hunks[0]?.lines).toEqual([
      { kind: 'same', text: 'first', old: 1, new: 1 },
      { kind: 'removed', text: 'echo Helo', old: 2 },
      { kind: 'added', text: 'echo Hello', new: 2 },
      { kind: 'added', text: 'echo again', new: 3 },
      { kind: 'same', text: 'last', old: 3, new: 4 },
    ]);
  });

  it('may contain lines that look like the head of another file', () => {
    const tricky = `diff --git a/x b/x
--- a/x
+++ b/x
@@ -1,3 +1,3 @@
--- a/secret
-diff --git a/y b/y
+++ b/secret
+@@ -1 +1 @@
 same
`;
    const { files } = parseDiff(tricky);
    expect(files).toHaveLength(1);
    expect(files[0]?.newName).toBe('x');
    expect(files[0]?.hunks[0]?.lines.map((line) => line.text)).toEqual([
      '-- a/secret',
      'diff --git a/y b/y',
      '++ b/secret',
      '@@ -1 +1 @@',
      'same',
    ]);
  });

  it('knows what has no line break at its end', () => {
    const { files } = parseDiff(`diff --git a/n b/n
--- a/n
+++ b/n
@@ -1 +1 @@
-old
\\ No newline at end of file
+new
`);
    expect(files[0]?.hunks[0]?.lines).toEqual([
      { kind: 'removed', text: 'old', old: 1, noNewline: true },
      { kind: 'added', text: 'new', new: 1 },
    ]);
  });

  it('keeps the returns of files that have them, also in empty lines', () => {
    const { files } = parseDiff(
      'diff --git a/w b/w\n--- a/w\n+++ b/w\n@@ -1,3 +1,3 @@\n one\r\n \r\n-two\r\n+two\n',
    );
    expect(files[0]?.hunks[0]?.lines.map((line) => line.text)).toEqual(['one\r', '\r', 'two\r', 'two']);
  });
});

describe('files', () => {
  it('that are new, removed, renamed, copied, binary or have another mode', () => {
    const { files } = parseDiff(`diff --git a/new b/new
new file mode 100755
index 000..111
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+x
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
diff --git a/src b/dst
similarity index 90%
copy from src
copy to dst
--- a/src
+++ b/dst
@@ -1 +1 @@
-a
+b
diff --git a/pic.png b/pic.png
index 1..2 100644
Binary files a/pic.png and b/pic.png differ
diff --git a/run me b/run me
old mode 100644
new mode 100755
diff --git a/empty b/empty
new file mode 100644
index 0000000..e69de29
`);
    expect(files.map((file) => [file.kind, file.oldName, file.newName, file.binary])).toEqual([
      ['added', 'new', 'new', false],
      ['removed', 'gone', 'gone', false],
      ['renamed', 'old name.txt', 'new name.txt', false],
      ['copied', 'src', 'dst', false],
      ['changed', 'pic.png', 'pic.png', true],
      ['mode', 'run me', 'run me', false],
      ['added', 'empty', 'empty', false],
    ]);
    expect(files[0]?.mode).toBe('100755');
    expect(files[5]?.mode).toBe('100644 → 100755');
  });

  it('with quotes, spaces, tabs and bytes of other alphabets in their names', () => {
    const { files } =
      parseDiff(`diff --git "a/gr\\303\\274\\303\\237e \\"x\\".txt" "b/gr\\303\\274\\303\\237e \\"x\\".txt"
new file mode 100644
--- /dev/null
+++ "b/gr\\303\\274\\303\\237e \\"x\\".txt"
@@ -0,0 +1 @@
+neu
diff --git a/a b.txt b/a b.txt
--- a/a b.txt\t
+++ b/a b.txt\t
@@ -1 +1 @@
-1
+2
diff --git a/<img src=x onerror=alert(1)> b/<img src=x onerror=alert(1)>
new file mode 100644
`);
    expect(files.map((file) => file.newName)).toEqual([
      'grüße "x".txt',
      'a b.txt',
      '<img src=x onerror=alert(1)>',
    ]);
    expect(unquoted('"tab\\tnew\\nline\\\\"')).toBe('tab\tnew\nline\\');
    expect(unquoted('"no end')).toBe('no end');
    expect(unquoted('"\\q\\9"')).toBe('\\q\\9');
  });

  it('with a binary patch, which is no text', () => {
    const { files } = parseDiff(`diff --git a/b b/b
GIT binary patch
literal 4
LcmZQzU|?i
diff --git a/after b/after
new file mode 100644
`);
    expect(files.map((file) => [file.newName, file.binary])).toEqual([
      ['b', true],
      ['after', false],
    ]);
  });
});

describe('what is not whole', () => {
  it('is nothing where there is nothing', () => {
    expect(parseDiff('')).toEqual({ files: [], added: 0, removed: 0, notes: [] });
    expect(parseDiff('\n\n').files).toEqual([]);
  });

  it('is shown as far as it goes, with the note of whoever cut it', () => {
    const { files, notes } = parseDiff(
      `${CHANGE.split('\n').slice(0, 7).join('\n')}\n\n… cut here: the rest is on the branch\n`,
    );
    expect(files[0]?.removed).toBe(1);
    expect(notes).toEqual(['… cut here: the rest is on the branch']);
  });

  it('is told as a note where it is no diff at all', () => {
    expect(parseDiff('hello\n<script>').notes).toEqual(['hello', '<script>']);
    expect(parseDiff('diff --git \n@@ nonsense @@\n@@ -x +y @@').files).toHaveLength(1);
  });
});

it('takes a large diff in good time', () => {
  const lines = Array.from({ length: 60_000 }, (_, index) => `+line ${index}`).join('\n');
  const text = `diff --git a/big b/big\n--- a/big\n+++ b/big\n@@ -0,0 +1,60000 @@\n${lines}\n`;
  const from = performance.now();
  expect(parseDiff(text).added).toBe(60_000);
  expect(performance.now() - from).toBeLessThan(2_000);
});

describe('side by side', () => {
  it('pairs what was removed with what came in its place', () => {
    const rows = pairs(parseDiff(CHANGE).files[0]?.hunks[0]?.lines ?? []);
    expect(rows.map(({ left, right }) => [left?.text, right?.text])).toEqual([
      ['first', 'first'],
      ['echo Helo', 'echo Hello'],
      [undefined, 'echo again'],
      ['last', 'last'],
    ]);
  });

  it('marks the part of a line that differs, and none where the lines have little in common', () => {
    expect(within('echo Hello', 'echo Helo')).toEqual([
      { text: 'echo Hel', differs: false },
      { text: 'l', differs: true },
      { text: 'o', differs: false },
    ]);
    expect(within('aaaa', 'zzzz')).toEqual([{ text: 'aaaa', differs: false }]);
    expect(within('same', undefined)).toEqual([{ text: 'same', differs: false }]);
    expect(
      within('aXa', 'aa')
        .map((part) => part.text)
        .join(''),
    ).toBe('aXa');
  });
});

// Parses a unified diff as git writes it. Names and lines may be anything. Never throws: what it does not understand it
// keeps as a note, so that nothing is hidden from a reviewer.

export interface DiffLine {
  kind: 'same' | 'added' | 'removed';
  text: string;
  /// Line numbers, from 1.
  old?: number;
  new?: number;
  noNewline?: boolean;
}

export interface Hunk {
  header: string;
  lines: DiffLine[];
}

export interface DiffFile {
  oldName: string;
  newName: string;
  kind: 'changed' | 'added' | 'removed' | 'renamed' | 'copied' | 'mode';
  binary: boolean;
  /// Such as `100644 → 100755`.
  mode?: string;
  similarity?: string;
  hunks: Hunk[];
  added: number;
  removed: number;
}

export interface Diff {
  files: DiffFile[];
  added: number;
  removed: number;
  /// Lines outside any file, such as the factory's note that the rest was cut off.
  notes: string[];
}

export function parseDiff(text: string): Diff {
  const reader = new Reader(text);
  const notes: string[] = [];
  const files: DiffFile[] = [];
  for (let line = reader.peek(); line !== undefined; line = reader.peek()) {
    if (line.startsWith('diff --git ')) files.push(file(reader));
    else if (line.startsWith('--- ') && reader.peek(1)?.startsWith('+++ ')) files.push(file(reader));
    else {
      reader.next();
      if (line.trim() !== '') notes.push(line);
    }
  }
  const sum = (pick: (file: DiffFile) => number) => files.reduce((all, one) => all + pick(one), 0);
  return { files, added: sum((one) => one.added), removed: sum((one) => one.removed), notes };
}

class Reader {
  private at = 0;
  private readonly lines: string[];

  constructor(text: string) {
    this.lines = text.split('\n');
    // A final line break ends the last line; it begins no other.
    if (this.lines.at(-1) === '') this.lines.pop();
  }

  peek(ahead = 0): string | undefined {
    return this.lines[this.at + ahead];
  }

  next(): string | undefined {
    const line = this.lines[this.at];
    this.at += 1;
    return line;
  }
}

function file(reader: Reader): DiffFile {
  const found: DiffFile = {
    oldName: '',
    newName: '',
    kind: 'changed',
    binary: false,
    hunks: [],
    added: 0,
    removed: 0,
  };
  if (reader.peek()?.startsWith('diff --git ')) {
    const names = bothNames((reader.next() ?? '').slice('diff --git '.length));
    found.oldName = names[0];
    found.newName = names[1];
  }
  let oldMode = '';
  for (let line = reader.peek(); line !== undefined; line = reader.peek()) {
    if (line.startsWith('diff --git ')) break;
    if (line.startsWith('@@ ')) {
      hunk(reader, found);
      continue;
    }
    const [word, rest] = extended(line);
    if (word === undefined) break;
    if (word === 'old mode ') oldMode = rest;
    else if (word === 'new mode ') {
      found.mode = `${oldMode} → ${rest}`;
      if (found.kind === 'changed') found.kind = 'mode';
    } else header(found, word, rest);
    reader.next();
    if (word === 'GIT binary patch') skipBinary(reader);
  }
  // A mode that changed along with the text is a change like any other.
  if (found.kind === 'mode' && found.hunks.length > 0) found.kind = 'changed';
  return found;
}

// biome-ignore format: a table
const HEADERS = [
  'old mode ', 'new mode ', 'new file mode ', 'deleted file mode ', 'similarity index ',
  'dissimilarity index ', 'rename from ', 'rename to ', 'copy from ', 'copy to ', 'index ', 'Binary files ',
  'GIT binary patch', '--- ', '+++ ',
];

function extended(line: string): [string | undefined, string] {
  const word = HEADERS.find((known) => line.startsWith(known));
  return [word, word ? line.slice(word.length) : ''];
}

function header(found: DiffFile, word: string, rest: string): void {
  switch (word) {
    case 'new file mode ':
      found.kind = 'added';
      if (!rest.startsWith('100644')) found.mode = rest;
      break;
    case 'deleted file mode ':
      found.kind = 'removed';
      break;
    case 'similarity index ':
      found.similarity = rest;
      break;
    case 'rename from ':
    case 'copy from ':
      found.kind = word === 'rename from ' ? 'renamed' : 'copied';
      found.oldName = unquoted(rest);
      break;
    case 'rename to ':
    case 'copy to ':
      found.newName = unquoted(rest);
      break;
    case 'Binary files ':
    case 'GIT binary patch':
      found.binary = true;
      break;
    case '--- ':
      takeName(rest, (name) => {
        found.oldName = name;
        if (!found.newName) found.newName = name;
      });
      if (rest.trim() === '/dev/null') found.kind = 'added';
      break;
    case '+++ ':
      takeName(rest, (name) => {
        found.newName = name;
        if (found.kind === 'added') found.oldName = name;
      });
      if (rest.trim() === '/dev/null') found.kind = 'removed';
      break;
  }
}

function takeName(rest: string, take: (name: string) => void): void {
  // Git ends a name that has spaces with a tab; other tools put a time behind it.
  const name = rest.startsWith('"') ? unquoted(rest) : (rest.split('\t')[0] ?? '').replace(/\r$/, '');
  if (name !== '/dev/null') take(withoutPrefix(name));
}

function skipBinary(reader: Reader): void {
  for (
    let line = reader.peek();
    line !== undefined && !line.startsWith('diff --git ');
    line = reader.peek()
  ) {
    reader.next();
  }
}

const HUNK = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/;

function hunk(reader: Reader, found: DiffFile): void {
  const header = reader.next() ?? '';
  const numbers = HUNK.exec(header);
  const lines: DiffLine[] = [];
  found.hunks.push({ header, lines });
  if (!numbers) return;
  let [oldLine, newLine] = [Number(numbers[1]), Number(numbers[3])];
  let [oldLeft, newLeft] = [Number(numbers[2] ?? 1), Number(numbers[4] ?? 1)];
  // By the counts and not by the looks: a removed line that reads `-- a/x` looks like the name of a file.
  for (let line = reader.peek(); line !== undefined; line = reader.peek()) {
    if (line.startsWith('\\')) {
      const last = lines.at(-1);
      if (last) last.noNewline = true;
    } else if (oldLeft <= 0 && newLeft <= 0) {
      return;
    } else if (line.startsWith('+') && newLeft > 0) {
      lines.push({ kind: 'added', text: line.slice(1), new: newLine });
      [newLine, newLeft, found.added] = [newLine + 1, newLeft - 1, found.added + 1];
    } else if (line.startsWith('-') && oldLeft > 0) {
      lines.push({ kind: 'removed', text: line.slice(1), old: oldLine });
      [oldLine, oldLeft, found.removed] = [oldLine + 1, oldLeft - 1, found.removed + 1];
    } else if ((line.startsWith(' ') || line === '' || line === '\r') && oldLeft > 0 && newLeft > 0) {
      lines.push({ kind: 'same', text: line.slice(1), old: oldLine, new: newLine });
      [oldLine, oldLeft, newLine, newLeft] = [oldLine + 1, oldLeft - 1, newLine + 1, newLeft - 1];
    } else {
      // Cut off in the middle.
      return;
    }
    reader.next();
  }
}

/// `a/x b/x`: with spaces in the names one cannot see where the first ends, but they are the same name.
function bothNames(text: string): [string, string] {
  const line = text.replace(/\r$/, '');
  if (line.startsWith('"')) {
    const end = quoteEnd(line);
    return [
      withoutPrefix(unquoted(line.slice(0, end))),
      withoutPrefix(unquoted(line.slice(end).trimStart())),
    ];
  }
  const half = (line.length - 1) / 2;
  const [left, right] = [line.slice(0, half), line.slice(half + 1)];
  if (line[half] === ' ' && withoutPrefix(left) === withoutPrefix(right)) {
    return [withoutPrefix(left), withoutPrefix(right)];
  }
  const between = line.search(/ (?:"?b\/)/);
  if (between < 0) return [withoutPrefix(line), withoutPrefix(line)];
  return [withoutPrefix(line.slice(0, between)), withoutPrefix(unquoted(line.slice(between + 1)))];
}

function withoutPrefix(name: string): string {
  return /^[abciow]\//.test(name) ? name.slice(2) : name;
}

function quoteEnd(text: string): number {
  for (let at = 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}

const ESCAPES: Record<string, number> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, '\\': 92 };

/// Git quotes names as C does, byte for byte.
export function unquoted(text: string): string {
  if (!text.startsWith('"')) return text.replace(/\r$/, '');
  const end = quoteEnd(text);
  const inner = text.slice(1, text[end - 1] === '"' && end > 1 ? end - 1 : end);
  const encoder = new TextEncoder();
  const bytes: number[] = [];
  for (let at = 0; at < inner.length; ) {
    const octal = /^\\([0-3][0-7]{2})/.exec(inner.slice(at, at + 4));
    const escaped = inner[at] === '\\' ? ESCAPES[inner[at + 1] ?? ''] : undefined;
    if (octal?.[1] !== undefined) {
      bytes.push(Number.parseInt(octal[1], 8));
      at += 4;
    } else if (escaped !== undefined) {
      bytes.push(escaped);
      at += 2;
    } else {
      const character = String.fromCodePoint(inner.codePointAt(at) ?? 0xfffd);
      bytes.push(...encoder.encode(character));
      at += character.length;
    }
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

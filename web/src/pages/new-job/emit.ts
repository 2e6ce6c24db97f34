// The manifest as a file: YAML front matter and the body byte for byte. Only text that no YAML parser could take for
// anything else is unquoted; all other text is a JSON string, which YAML reads as the same text.

import type { Manifest, ManifestItem, ManifestValue, Scalar } from './form';

const INDENT = '  ';
/// Starts with a letter and has no YAML syntax. A colon or a dot is always inside a word.
const BARE = /^[A-Za-z](?:[A-Za-z0-9_@+/-]|[.:](?=[A-Za-z0-9_@+/-])| (?=[A-Za-z0-9]))*$/;
const DURATION = /^(?:\d+(?:ms|s|m|h|d))+$/;
const OTHER_THAN_TEXT = /^(?:y|n|yes|no|on|off|true|false|null|inf|nan)$/i;
/// Characters that JSON does not escape although some parsers take them for line ends, or nobody can see them.
const UNSEEN =
  /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff]|\p{Surrogate}/u;

export function emit(manifest: Manifest, body: string): string {
  const lines = Object.entries(manifest).map(([key, value]) => `${key}:${written(key, value)}\n`);
  return `---\n${lines.join('')}---\n${body}`;
}

function written(key: string, value: ManifestValue): string {
  if (typeof value === 'string' && value.includes('\n') && isBlock(value)) return blockOf(value);
  if (Array.isArray(value) && key === 'verify') {
    return value.map((item) => `\n${INDENT}- ${inFlow(item)}`).join('');
  }
  return ` ${inFlow(value)}`;
}

function inFlow(value: ManifestValue | ManifestItem): string {
  if (Array.isArray(value)) return `[${value.map(inFlow).join(', ')}]`;
  if (typeof value === 'object') {
    const parts = Object.entries(value).map(([key, part]) => `${key}: ${inFlow(part)}`);
    return `{${parts.join(', ')}}`;
  }
  return scalar(value);
}

export function scalar(value: Scalar): string {
  if (typeof value !== 'string') return String(value);
  const bare = (BARE.test(value) && !OTHER_THAN_TEXT.test(value)) || DURATION.test(value);
  return bare ? value : quoted(value);
}

function quoted(text: string): string {
  return JSON.stringify(text).replace(new RegExp(UNSEEN, 'gu'), (found) => {
    const code = found.charCodeAt(0);
    // Half of a character cannot be sent.
    return code >= 0xd800 && code <= 0xdfff ? '\ufffd' : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/// A script reads better as a block, if its indentation is unambiguous and nothing in it is invisible.
function isBlock(text: string): boolean {
  const lines = text.split('\n');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  const unseen = /[\u0000-\u0008\u000b-\u001f]/;
  const seen = !unseen.test(text) && !UNSEEN.test(text);
  const indented = /^[ \t]/.test(lines.find((line) => line.trim() !== '') ?? ' ');
  return (
    seen && !indented && lines[0]?.trim() !== '' && !lines.some((line) => line !== '' && line.trim() === '')
  );
}

function blockOf(text: string): string {
  const body = text.replace(/\n+$/, '');
  const ends = text.length - body.length;
  const keep = ends === 0 ? '-' : ends === 1 ? '' : '+';
  const lines = body.split('\n').map((line) => (line === '' ? '' : INDENT + line));
  const tail = '\n'.repeat(Math.max(0, ends - 1));
  return ` |${keep}\n${lines.join('\n')}${tail}`;
}

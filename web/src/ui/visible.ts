// Characters that turn the order of others around, or that nobody sees, are written out: what one reads is what is
// there. The coordinator does the same with Markdown: crates/server/src/markdown/spelled.rs knows the same characters,
// and the tests of both read one table.

/// Wherever they stand: controls but for tabs and line breaks, fillers and marks without width, what turns the order of
/// others, line and paragraph separators, selectors of variants, and tags, which spell ASCII that nobody sees.
// biome-ignore format: a table
const HIDDEN: readonly (readonly [number, number])[] = [
  [0x00, 0x08], [0x0b, 0x0c], [0x0e, 0x1f], [0x7f, 0x9f], [0xad, 0xad], [0x34f, 0x34f], [0x61c, 0x61c],
  [0x115f, 0x1160], [0x180e, 0x180e], [0x200b, 0x200b], [0x200e, 0x200f], [0x2028, 0x202e], [0x2060, 0x206f],
  [0x3164, 0x3164], [0xfe00, 0xfe0d], [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff9, 0xfffb],
  [0x1d173, 0x1d17a], [0xe0000, 0xe0fff],
];

const hex = (code: number) => code.toString(16).toUpperCase();
const hidden = HIDDEN.map(([from, to]) => `\\u{${hex(from)}}-\\u{${hex(to)}}`).join('');
/// The scripts that need joiners, and emoji.
const joined = String.raw`\u0600-\u061b\u061d-\u109f\u1700-\u180d\u180f-\u18af\u1900-\u1cff\u2190-\u2bff\ua800-\uabff\ufe0f\u{1f000}-\u{1faff}`;
/// What has an emoji and a text form.
const pictures = String.raw`©®\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\u{1f000}-\u{1faff}`;

// The others hide nothing where they have their place: a return before a line break, joiners within words and emoji,
// the two selectors behind a picture or in a keycap.
const OUT_OF_PLACE = [
  `[${hidden}]`,
  String.raw`\r(?!\n|$)`,
  String.raw`(?<![${joined}])[\u200c\u200d]`,
  String.raw`(?<![${pictures}])(?<![0-9#*](?=.\u20e3))[\ufe0e\ufe0f]`,
];
const WRITTEN_OUT = new RegExp(OUT_OF_PLACE.join('|'), 'gu');

export function visible(text: string): string {
  return text.replace(
    WRITTEN_OUT,
    (character) => `⟨U+${hex(character.codePointAt(0) ?? 0).padStart(4, '0')}⟩`,
  );
}

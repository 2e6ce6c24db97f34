// Characters that turn the order of others around, or that nobody sees, are written out: what one reads in a log or a
// diff is what is there.

const HIDDEN = /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g;

export function visible(text: string): string {
  return text.replace(
    HIDDEN,
    (character) => `⟨U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  );
}

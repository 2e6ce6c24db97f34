import classes from './shared.module.css';

/// A sentence of the coordinator: text between backticks is shown as code. Text nodes only, since anybody may have written it.
export function CodeText({ text }: { text: string }) {
  return codeParts(text).map((part) =>
    part.code ? (
      <code key={part.at} className={classes.inlineCode}>
        {part.text}
      </code>
    ) : (
      <span key={part.at}>{part.text}</span>
    ),
  );
}

/// Splits `lacks \`xcode\``.
export function codeParts(text: string): { text: string; code: boolean; at: number }[] {
  const parts = text.split('`');
  // An unmatched backtick is only a character.
  if (parts.length % 2 === 0) return [{ text, code: false, at: 0 }];
  let at = 0;
  return parts
    .map((part, index) => {
      const piece = { text: part, code: index % 2 === 1, at };
      at += part.length + 1;
      return piece;
    })
    .filter((piece) => piece.text !== '');
}

import { pieces } from './ExplainGroups';
import classes from './ExplainPanel.module.css';

/// A sentence of the scheduler; names in it stand out. Text nodes only.
export function Words({ text }: { text: string }) {
  return pieces(text).map((piece) =>
    piece.code ? (
      <code key={piece.at} className={classes.name}>
        {piece.text}
      </code>
    ) : (
      <span key={piece.at}>{piece.text}</span>
    ),
  );
}

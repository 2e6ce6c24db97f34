import type { Budget } from '../../api/types';
import { Ago } from '../../ui/Ago';
import { Icon } from '../../ui/Icon';
import classes from './PauseNote.module.css';
import { pauseWords } from './spending';

/// That nothing of the product is started, why, since when and until when.
export function PauseNote({ budget }: { budget: Budget }) {
  const words = pauseWords(budget);
  if (!words || !budget.paused) return null;
  return (
    <p className={classes.note}>
      <Icon name="pause" size={14} />
      <span>
        <b>{words.why}</b>, <Ago at={budget.paused.at} />. Nothing is started {words.until}.
      </span>
    </p>
  );
}

import { count } from '../../../ui/format';
import classes from './DiffView.module.css';

export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className={classes.counts}>
      <span className={classes.plus}>+{count(added)}</span>{' '}
      <span className={classes.minus}>−{count(removed)}</span>
    </span>
  );
}

import type { ReactNode } from 'react';
import { Icon } from './Icon';
import classes from './shared.module.css';

export type Tone = 'bad' | 'warn' | 'busy';

/// A note in the middle of a page, marked by more than colour. Screen readers read an `urgent` one at once.
export function Note({
  tone,
  title,
  urgent,
  children,
}: {
  tone: Tone;
  title: ReactNode;
  urgent?: boolean;
  children?: ReactNode;
}) {
  return (
    <div className={classes.note} data-tone={tone} role={urgent ? 'alert' : undefined}>
      <div className={classes.noteTitle}>
        <Icon name={tone === 'busy' ? 'open' : 'warn'} size={14} />
        {title}
      </div>
      {children && <div className={classes.noteText}>{children}</div>}
    </div>
  );
}

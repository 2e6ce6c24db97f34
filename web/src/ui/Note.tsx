import type { ReactNode } from 'react';
import type { FieldError } from '../api/problem';
import { CodeText } from './CodeText';
import { Icon } from './Icon';
import classes from './shared.module.css';

interface NoteProps {
  tone: 'bad' | 'warn' | 'busy';
  title: ReactNode;
  urgent?: boolean;
  children?: ReactNode;
}

/// A note in the middle of a page, marked by more than colour. Screen readers read an `urgent` one at once.
export function Note({ tone, title, urgent, children }: NoteProps) {
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

/// What is wrong, one by one, with the line of a text where it has lines.
export function ErrorList({ errors }: { errors: readonly FieldError[] }) {
  return (
    <ul>
      {errors.map(({ field, line, message }) => (
        <li key={`${line ?? ''} ${field} ${message}`}>
          {line ? <b>Line {line}: </b> : null}
          <CodeText text={message} />
        </li>
      ))}
    </ul>
  );
}

import type { Job } from '../../../api/types';
import { REVIEW_VERDICT } from '../../../api/vocabulary';
import { Ago } from '../../../ui/Ago';
import { Markdown } from '../../../ui/Markdown';
import { Panel } from '../../../ui/Panel';
import { visible } from '../../../ui/visible';
import classes from './Review.module.css';

/// The reviews so far, newest first.
export function EarlierReviews({ job }: { job: Job }) {
  const reviews = [...(job.reviews ?? [])].reverse();
  if (reviews.length === 0) return null;
  return (
    <Panel title="Reviews">
      <ol className={classes.notes} reversed>
        {reviews.map((note) => (
          <li key={`${note.at} ${note.reviewer}`}>
            <div className={classes.who}>
              <b>{visible(note.reviewer)}</b>{' '}
              <span data-verdict={note.verdict}>{REVIEW_VERDICT[note.verdict]?.did ?? note.verdict}</span>
              <span className={classes.when}>
                run {note.leaseEpoch}, <Ago at={note.at} />
              </span>
            </div>
            {note.comment && <Markdown text={note.comment} />}
          </li>
        ))}
      </ol>
    </Panel>
  );
}

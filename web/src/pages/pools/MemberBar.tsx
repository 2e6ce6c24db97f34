import type { Pool } from '../../api/types';
import classes from './Pools.module.css';
import { MEMBER_WORD, partsInWords, partsOf } from './pools';

/// The factories of a pool by state, against how many it may have.
export function MemberBar({ pool }: { pool: Pick<Pool, 'name' | 'members' | 'settings'> }) {
  const words = partsInWords(pool);
  return (
    <div className={classes.factories}>
      <div className={classes.bar} role="img" aria-label={`Factories of ${pool.name}: ${words}`}>
        {partsOf(pool).map(({ word, share }) => (
          <span
            key={word}
            className={classes.part}
            data-word={word}
            data-tone={MEMBER_WORD[word].tone}
            style={{ width: `${share * 100}%` }}
          />
        ))}
      </div>
      <span className={classes.words} aria-hidden>
        {words}
      </span>
    </div>
  );
}

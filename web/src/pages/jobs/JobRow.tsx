import { type CSSProperties, memo } from 'react';
import type { Job } from '../../api/types';
import { visible } from '../../ui/visible';
import { COLUMNS } from './columns';
import classes from './JobTable.module.css';
import type { RowState } from './useJobList';

interface JobRowProps {
  job: Job;
  index: number;
  state: RowState;
  isSelected: boolean;
  isActive: boolean;
  choose(id: string, range: boolean): void;
  activate(id: string): void;
}

const STRAY: Record<RowState, string | undefined> = {
  listed: undefined,
  elsewhere: 'no longer matches',
  gone: 'no longer exists',
};

export const JobRow = memo(function JobRow(props: JobRowProps) {
  const { job, index, state, isSelected, isActive, choose, activate } = props;
  const stray = STRAY[state];
  return (
    <tr
      className={classes.row}
      aria-rowindex={index + 2}
      data-selected={isSelected || undefined}
      data-active={isActive || undefined}
      data-stray={stray ? true : undefined}
    >
      <td className={classes.check}>
        <label className={classes.box}>
          <input
            type="checkbox"
            aria-label={`Select ${visible(job.name)}`}
            checked={isSelected}
            onChange={(event) => {
              const { nativeEvent } = event;
              choose(job.id, nativeEvent instanceof MouseEvent && nativeEvent.shiftKey);
            }}
          />
        </label>
      </td>
      {COLUMNS.map(({ id, cell: Cell, align, wideOnly, card, title }) => (
        <td
          key={id}
          data-align={align}
          data-wide-only={wideOnly}
          title={title?.(job)}
          style={{ '--card': card?.area, '--card-align': card?.align } as CSSProperties}
        >
          <Cell job={job} stray={stray} activate={activate} />
        </td>
      ))}
    </tr>
  );
});

export function JobHeaderCells() {
  return COLUMNS.map(({ id, header, width, align, wideOnly }) => (
    <th
      key={id}
      data-align={align}
      data-wide-only={wideOnly}
      style={{ '--width': width && `${width}px` } as CSSProperties}
    >
      {header}
    </th>
  ));
}

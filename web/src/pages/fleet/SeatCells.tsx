import { plural } from '../../ui/format';
import classes from './SeatCells.module.css';
import { seats } from './standing';

/// More cells than this cannot be told apart.
const CELLS = 32;

/// Seats as cells: filled ones are used, hatched ones offered, empty ones free.
export function SeatCells({ limit, used, offered }: { limit: number; used: number; offered: number }) {
  const taken = seats(limit, used, offered);
  const words = [
    `${used} of ${plural(limit, 'seat')} used`,
    taken.reserved > 0 && `${taken.reserved} offered`,
    taken.over > 0 && `${taken.over} too many`,
  ].filter(Boolean);
  // Larger factories are drawn in proportion.
  const scale = limit > CELLS ? CELLS / limit : 1;
  const cells = (n: number, least = 0) => Math.max(least, Math.round(n * scale));
  const usedCells = Math.min(CELLS, cells(taken.used, taken.used > 0 ? 1 : 0));
  const reservedCells = Math.min(CELLS - usedCells, cells(taken.reserved, taken.reserved > 0 ? 1 : 0));
  const freeCells = Math.max(0, cells(limit) - usedCells - reservedCells);
  const drawn = [
    ...Array<string>(usedCells).fill('used'),
    ...Array<string>(reservedCells).fill('reserved'),
    ...Array<string>(freeCells).fill('free'),
  ];
  return (
    <div className={classes.seats}>
      <span className={classes.cells} aria-hidden>
        {drawn.map((kind, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a cell is its place
          <span key={place} className={classes.cell} data-kind={kind} />
        ))}
      </span>
      <span className={classes.words}>{words.join(', ')}</span>
    </div>
  );
}

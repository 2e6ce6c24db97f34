import { UnstyledButton } from '@mantine/core';
import { memo } from 'react';
import type { Factory } from '../../api/types';
import classes from './FactorySquare.module.css';
import { StandingMark } from './StandingMark';
import { STANDING_WORDS, seats, standing } from './standing';

/// A factory among hundreds: how it stands and how full it is. A click tells the rest.
export const FactorySquare = memo(function FactorySquare({
  factory,
  offered,
  onOpen,
}: {
  factory: Factory;
  offered: number;
  onOpen: (id: string) => void;
}) {
  const stands = standing(factory);
  const { used, reserved, over } = seats(factory.seatLimit, factory.seatsUsed, offered);
  const share = factory.seatLimit > 0 ? Math.min(1, (used + reserved + over) / factory.seatLimit) : 0;
  const seatWords = `${factory.seatsUsed}/${factory.seatLimit}`;
  return (
    <UnstyledButton
      className={classes.square}
      data-row
      data-standing={stands}
      onClick={() => onOpen(factory.id)}
      title={`${factory.id}: ${STANDING_WORDS[stands]}, ${seatWords} seats`}
      aria-label={`${factory.id}, ${STANDING_WORDS[stands]}, ${seatWords} seats used`}
    >
      <span className={classes.name}>{factory.id}</span>
      <span className={classes.line}>
        <StandingMark standing={stands} />
        <span>{seatWords}</span>
      </span>
      <span className={classes.fill} style={{ width: `${share * 100}%` }} aria-hidden />
    </UnstyledButton>
  );
});

import { Alert, Button, Group, Text, Tooltip } from '@mantine/core';
import { useFeed, useFeedState } from '../live/LiveProvider';
import { duration } from '../ui/format';
import { useNow } from '../ui/useNow';
import classes from './Shell.module.css';

const WORDS = { live: 'live', connecting: 'connecting', asleep: 'asleep', lost: 'connection lost' } as const;

/// Whether what is shown is fresh, always in sight.
export function Connection() {
  const state = useFeedState();
  const about = {
    live: 'Every change is shown as it happens',
    connecting: 'Waiting for the coordinator',
    asleep: 'The page was out of sight; it goes on when it is looked at',
    lost: 'What is shown may be old',
  }[state.kind];
  return (
    <Tooltip label={about}>
      <Text
        size="xs"
        className={classes.state}
        data-state={state.kind}
        role="status"
        aria-label={`Connection: ${WORDS[state.kind]}`}
      >
        <span className={classes.dot} aria-hidden />
        {WORDS[state.kind]}
      </Text>
    </Tooltip>
  );
}

export function LostBanner() {
  const state = useFeedState();
  const feed = useFeed();
  const now = useNow(state.kind === 'lost');
  if (state.kind !== 'lost') return null;
  return (
    <Alert
      color="red"
      title="The connection to the coordinator is lost"
      mb="md"
      role="alert"
      className={classes.banner}
    >
      <Group justify="space-between">
        <Text size="sm">
          For {duration(now - state.since)} now, so what you see may be old. It is tried again by itself;
          nothing that the coordinator acknowledged is lost. ({state.why})
        </Text>
        <Button size="xs" variant="default" onClick={feed.hurry}>
          Try now
        </Button>
      </Group>
    </Alert>
  );
}

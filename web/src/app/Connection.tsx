import { Alert, Group, Text, Tooltip } from '@mantine/core';
import type { FeedState } from '../live/feed';
import { useFeed, useFeedState } from '../live/LiveProvider';
import { SmallButton } from '../ui/Basics';
import { duration } from '../ui/format';
import { useNow } from '../ui/useNow';
import classes from './Shell.module.css';

const STATE: Record<FeedState['kind'], { label: string; about: string }> = {
  live: { label: 'live', about: 'Changes appear as they happen' },
  connecting: { label: 'connecting', about: 'Connecting to the coordinator' },
  asleep: {
    label: 'asleep',
    about: 'Disconnected while the tab is in the background; reconnects when you return',
  },
  lost: { label: 'connection lost', about: 'What you see may be out of date' },
};

/// Whether the page is live, always in sight.
export function Connection() {
  const { kind } = useFeedState();
  const { label, about } = STATE[kind];
  return (
    <Tooltip label={about}>
      <Text
        size="xs"
        className={classes.state}
        data-state={kind}
        role="status"
        aria-label={`Connection: ${label}`}
      >
        <span className={classes.dot} aria-hidden />
        {label}
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
      title="Lost connection to the coordinator"
      mb="md"
      role="alert"
      className={classes.banner}
    >
      <Group justify="space-between">
        <Text size="sm">
          {`Disconnected for ${duration(now - state.since)}, so what you see may be out of date. Reconnecting automatically; nothing that the coordinator acknowledged is lost. (${state.why})`}
        </Text>
        <SmallButton onClick={feed.reconnect}>Reconnect now</SmallButton>
      </Group>
    </Alert>
  );
}

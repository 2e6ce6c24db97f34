import { Anchor, Group, Text } from '@mantine/core';
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Problem } from '../api/problem';
import { alertsQuery, metricsQuery } from '../api/queries';
import { useFeedState } from '../live/LiveProvider';
import { percent, plural } from '../ui/format';

/// The fleet at a glance, on every page.
export function Summary() {
  const metrics = useQuery(metricsQuery());
  const alerts = useQuery(alertsQuery());
  const factories = metrics.data?.factories;
  const count = alerts.data?.alerts.length ?? 0;
  return (
    <Group gap="md" wrap="nowrap" visibleFrom="sm">
      {factories && (
        <Text size="xs" title={`${factories.seatsUsed} of ${factories.seats} seats used`}>
          {factories.seats > 0 ? `${percent(factories.utilisation)} busy` : 'no seats'} ·{' '}
          {plural(factories.live, 'factory', 'factories')}
        </Text>
      )}
      {count > 0 && (
        <Anchor size="xs" fw={600} component={Link} to="/" hash="alerts" c="var(--giga-warn)">
          {plural(count, 'alert')}
        </Anchor>
      )}
      <OutOfDate queries={[metrics, alerts]} />
    </Group>
  );
}

/// The feed may be live while these fail. A lost connection has its own banner.
function OutOfDate({ queries }: { queries: UseQueryResult<unknown>[] }) {
  const { kind } = useFeedState();
  const failed = queries.find((query) => query.isError);
  if (!failed || kind === 'lost') return null;
  const had = failed.data !== undefined;
  const since = had ? ` since ${new Date(failed.dataUpdatedAt).toLocaleTimeString()}` : '';
  return (
    <Text
      size="xs"
      fw={600}
      c="var(--giga-warn)"
      role="status"
      title={`Not updated${since}: ${Problem.from(failed.error).message}`}
    >
      {had ? `out of date${since}` : 'no data'}
    </Text>
  );
}

import { Anchor, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { alertsQuery, metricsQuery } from '../api/queries';
import { percent, plural } from '../ui/format';

/// The fleet in three figures, on every page.
export function Summary() {
  const { data: metrics } = useQuery(metricsQuery());
  const { data: alerts } = useQuery(alertsQuery());
  const factories = metrics?.factories;
  const count = alerts?.alerts.length ?? 0;
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
    </Group>
  );
}

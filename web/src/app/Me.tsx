import { ActionIcon, Menu, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { whoamiQuery } from '../api/queries';
import { session } from '../session/session';
import { Icon } from '../ui/Icon';

/// Whose token this is and what it may do.
export function Me() {
  const { data: me } = useQuery(whoamiQuery());
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label="Who you are">
          <Icon name="person" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} c="var(--mantine-color-text)">
            {me?.label || me?.tokenId || 'token'}
          </Text>
          <Text size="xs">
            {me?.role ?? me?.kind ?? 'unknown'},{' '}
            {me?.everyProduct ? 'every product' : (me?.products ?? []).join(', ')}
          </Text>
          {me && <Text size="xs">giga {me.version}</Text>}
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item onClick={() => session.end('out')}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

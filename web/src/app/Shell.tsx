import {
  ActionIcon,
  AppShell,
  Burger,
  Group,
  Menu,
  NavLink,
  Text,
  Tooltip,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { type RefObject, useEffect, useRef } from 'react';
import { whoamiQuery } from '../api/queries';
import { signOut } from '../session/signOut';
import { useMay } from '../session/useSession';
import { Icon } from '../ui/Icon';
import { Connection, LostBanner } from './Connection';
import { KeyboardHelp } from './Keyboard';
import { PLACES, placeOf } from './places';
import classes from './Shell.module.css';
import { Summary } from './Summary';
import { useDocumentTitle } from './title';

export function Shell() {
  const [opened, { toggle, close }] = useDisclosure();
  const here = placeOf(useRouterState({ select: (state) => state.location.pathname }));
  const arrivedAt = useRouterState({ select: (state) => state.resolvedLocation?.pathname });
  const main = useRef<HTMLElement>(null);
  const mayOperate = useMay('operator');
  useDocumentTitle(here?.label);
  useArrival(arrivedAt, main, close);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 180, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding="md"
    >
      <button type="button" className={classes.skip} onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={opened ? 'Close the menu' : 'Open the menu'}
              aria-expanded={opened}
            />
            <Text fw={700} component={Link} to="/" className={classes.brand}>
              Gigafactory
            </Text>
          </Group>
          <Group gap="sm" wrap="nowrap">
            <Summary />
            <Connection />
            <ColorScheme />
            <Account />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs">
        <nav aria-label="Pages">
          {PLACES.filter((place) => !('least' in place) || mayOperate).map((place) => (
            <NavLink
              key={place.to}
              component={Link}
              to={place.to}
              label={place.label}
              leftSection={<Icon name={place.icon} />}
              active={place === here}
              aria-current={place === here ? 'page' : undefined}
              className={classes.nav}
            />
          ))}
        </nav>
        <KeyboardHelp />
      </AppShell.Navbar>
      <AppShell.Main id="main" ref={main} tabIndex={-1} className={classes.main}>
        <LostBanner />
        <Outlet />
      </AppShell.Main>
    </AppShell>
  );
}

/// On another page the menu of a narrow screen closes, and keyboards and screen readers start at the top.
function useArrival(
  path: string | undefined,
  main: RefObject<HTMLElement | null>,
  closeMenu: () => void,
): void {
  const before = useRef(path);
  useEffect(() => {
    const isFirst = before.current === undefined;
    if (before.current === path) return;
    before.current = path;
    if (isFirst) return;
    closeMenu();
    // Unless the page has put the focus where it wants it.
    if (!main.current?.contains(document.activeElement)) main.current?.focus({ preventScroll: true });
  }, [path, main, closeMenu]);
}

function ColorScheme() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const next = colorScheme === 'auto' ? 'light' : colorScheme === 'light' ? 'dark' : 'auto';
  return (
    <Tooltip label={`Colours: ${colorScheme}. Click for ${next}`}>
      <ActionIcon
        variant="subtle"
        color="gray"
        onClick={() => setColorScheme(next)}
        aria-label={`Colours: ${colorScheme}, change to ${next}`}
      >
        <Icon name={colorScheme === 'dark' ? 'moon' : colorScheme === 'light' ? 'sun' : 'auto'} />
      </ActionIcon>
    </Tooltip>
  );
}

/// The token in use and what it may do.
function Account() {
  const { data: me } = useQuery(whoamiQuery());
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label="Your token">
          <Icon name="person" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} c="var(--mantine-color-text)">
            {me?.label || me?.tokenId || 'Token'}
          </Text>
          <Text size="xs">
            {me?.role ?? me?.kind ?? 'unknown'},{' '}
            {me?.everyProduct ? 'all products' : (me?.products ?? []).join(', ')}
          </Text>
          {me && <Text size="xs">giga {me.version}</Text>}
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item onClick={signOut}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

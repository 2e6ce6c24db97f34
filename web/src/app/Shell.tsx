import {
  ActionIcon,
  AppShell,
  Burger,
  Group,
  NavLink,
  Text,
  Tooltip,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { useEffect } from 'react';
import { Icon, type IconName } from '../ui/Icon';
import { Connection, LostBanner } from './Connection';
import { KeyboardHelp } from './Keyboard';
import { Me } from './Me';
import classes from './Shell.module.css';
import { Summary } from './Summary';

const PAGES: {
  to: '/' | '/jobs' | '/new' | '/budgets' | '/topics' | '/flags';
  label: string;
  icon: IconName;
}[] = [
  { to: '/', label: 'Fleet', icon: 'fleet' },
  { to: '/jobs', label: 'Jobs', icon: 'jobs' },
  { to: '/new', label: 'New job', icon: 'plus' },
  { to: '/budgets', label: 'Budgets', icon: 'budget' },
  { to: '/topics', label: 'Topics', icon: 'topics' },
  { to: '/flags', label: 'Flags', icon: 'flag' },
];

export function Shell() {
  const [opened, { toggle, close }] = useDisclosure();
  const path = useRouterState({ select: (state) => state.location.pathname });
  // The menu of a narrow screen closes when another page opens.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the path is what it goes by
  useEffect(close, [path]);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 180, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding="md"
    >
      <a className={classes.skip} href="#main">
        Skip to the page
      </a>
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Menu" />
            <Text fw={700} component={Link} to="/" className={classes.brand}>
              Gigafactory
            </Text>
          </Group>
          <Group gap="sm" wrap="nowrap">
            <Summary />
            <Connection />
            <ColorScheme />
            <Me />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs">
        <nav aria-label="Pages">
          {PAGES.map(({ to, label, icon }) => (
            <NavLink
              key={to}
              component={Link}
              to={to}
              label={label}
              leftSection={<Icon name={icon} />}
              active={to === '/' ? path === '/' : path.startsWith(to)}
              aria-current={(to === '/' ? path === '/' : path.startsWith(to)) ? 'page' : undefined}
              className={classes.nav}
            />
          ))}
        </nav>
        <KeyboardHelp />
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1} className={classes.main}>
        <LostBanner />
        <Outlet />
      </AppShell.Main>
    </AppShell>
  );
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

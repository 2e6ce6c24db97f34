import { Alert, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { flagsQuery, whoamiQuery } from '../../api/queries';
import type { WhoAmI } from '../../api/types';
import { CommandLine } from '../../ui/CommandLine';
import { PageHead, Panel } from '../../ui/Panel';
import { Loaded } from '../../ui/States';
import { DeliveryForm } from './DeliveryForm';
import { FlagRow } from './FlagRow';
import classes from './Flags.module.css';
import { ShadowPanel } from './ShadowPanel';

export function FlagsPage() {
  const me = useQuery(whoamiQuery());
  return (
    <Stack gap="md">
      <PageHead title="Flags" command="giga flags list" />
      <Loaded query={me} what="flags">
        {(who) => (who.everyProduct ? <Flags /> : <NotForOneProduct me={who} />)}
      </Loaded>
      <ShadowPanel />
    </Stack>
  );
}

function NotForOneProduct({ me }: { me: WhoAmI }) {
  return (
    <Alert color="blue" title="Flags are for the whole fleet">
      <Text size="sm">
        Your token is for {me.products.join(', ')}, and flags change how every product runs, so they are shown
        to tokens for every product only. Whoever runs the fleet can tell you how one is set, or make such a
        token:{' '}
      </Text>
      <CommandLine command="giga token create --role viewer" />
    </Alert>
  );
}

function Flags() {
  const flags = useQuery(flagsQuery());
  return (
    <>
      <Panel
        title="What can be changed while it runs"
        aside={
          <Text size="xs" c="dimmed">
            changing needs the role admin
          </Text>
        }
      >
        <Loaded query={flags} what="flags">
          {(data) => (
            <ul className={classes.list}>
              {data.flags.map((flag) => (
                <FlagRow key={flag.name} flag={flag} />
              ))}
            </ul>
          )}
        </Loaded>
      </Panel>
      <DeliveryForm />
    </>
  );
}

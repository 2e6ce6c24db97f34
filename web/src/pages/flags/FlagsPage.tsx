import { Alert, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { flagsQuery, whoamiQuery } from '../../api/queries';
import type { WhoAmI } from '../../api/types';
import { Hint } from '../../ui/Basics';
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
        {(who) => (who.everyProduct ? <Flags /> : <NeedsAllProducts me={who} />)}
      </Loaded>
      <ShadowPanel />
    </Stack>
  );
}

function NeedsAllProducts({ me }: { me: WhoAmI }) {
  return (
    <Alert color="blue" title="Flags apply to the whole fleet">
      <Text size="sm">
        Your token covers {me.products.join(', ')}. Flags affect every product, so only tokens for all
        products can see them. An admin can create one:{' '}
      </Text>
      <CommandLine command="giga token create --role viewer" />
    </Alert>
  );
}

function Flags() {
  const flags = useQuery(flagsQuery());
  return (
    <>
      <Panel title="Flags" aside={<Hint size="xs">changing a flag requires the admin role</Hint>}>
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

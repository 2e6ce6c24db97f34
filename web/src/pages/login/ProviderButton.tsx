import { Button, Divider } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { signInQuery } from '../../api/queries';

/// The way to the identity provider, where the coordinator has one. It comes back to the address that is open now.
export function ProviderButton() {
  const { data } = useQuery(signInQuery());
  if (!data?.offered || !data.loginPath) return null;
  const here = window.location.pathname + window.location.search;
  return (
    <>
      <Button component="a" href={`${data.loginPath}?to=${encodeURIComponent(here)}`}>
        Sign in with {data.provider}
      </Button>
      <Divider label="or with a token" />
    </>
  );
}

import { Button, Divider } from '@mantine/core';
import { useEffect, useState } from 'react';
import type { SignInOffer } from '../../api/types';

/// The way to the identity provider, where the coordinator has one. It comes back to the address that is open now.
export function ProviderButton() {
  const offer = useOffer();
  if (!offer?.offered || !offer.loginPath) return null;
  const here = window.location.pathname + window.location.search;
  return (
    <>
      <Button component="a" href={`${offer.loginPath}?to=${encodeURIComponent(here)}`}>
        Sign in with {offer.provider}
      </Button>
      <Divider label="or with a token" />
    </>
  );
}

/// Nobody is signed in here, so that there are no queries yet. Without an answer a token still works.
function useOffer(): SignInOffer | undefined {
  const [offer, setOffer] = useState<SignInOffer>();
  useEffect(() => {
    const left = new AbortController();
    fetch('/api/fleet/sign-in', { signal: left.signal })
      .then(async (response) => {
        if (response.ok) setOffer((await response.json()) as SignInOffer);
      })
      .catch(() => undefined);
    return () => left.abort();
  }, []);
  return offer;
}

import { Alert, Button, Center, Code, Paper, PasswordInput, Stack } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { Problem } from '../../api/problem';
import type { WhoAmI } from '../../api/types';
import { looksLikeToken, session } from '../../session/session';
import { Hint, PageTitle } from '../../ui/Basics';
import { ProviderButton } from './ProviderButton';

const MACHINE_TOKEN =
  'This token belongs to a machine and cannot sign in. Use one with the viewer role or higher.';

const WHY = {
  none: undefined,
  out: 'You are signed out. The token is no longer stored in this tab.',
  ended: 'The token was revoked or has expired. Sign in with another one.',
  forbidden: MACHINE_TOKEN,
} as const;

/// Signs in with a token, which is kept for this tab only.
export function LoginPage() {
  const [token, setToken] = useState('');
  const [wrong, setWrong] = useState<string>();
  const [busy, setBusy] = useState(false);
  const why = WHY[session.ending()];

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const typed = token.trim();
    if (!looksLikeToken(typed)) {
      setWrong('A token begins with giga_ and has no spaces. `giga web` prints a link that contains yours.');
      return;
    }
    setBusy(true);
    const refused = await refusal(typed);
    setBusy(false);
    if (refused) setWrong(refused);
    else session.begin(typed);
  };

  return (
    <Center mih="100vh" p="md" component="main">
      <Paper withBorder p="xl" w="100%" maw={460}>
        <form onSubmit={(event) => void submit(event)}>
          <Stack>
            <PageTitle>Gigafactory</PageTitle>
            {why && <Alert color="blue">{why}</Alert>}
            <ProviderButton />
            <PasswordInput
              label="Token"
              description={
                <>
                  On the coordinator’s machine, <Code>giga web</Code> prints a link that signs you in; the
                  token is in <Code>admin.token</Code> in its data folder.
                </>
              }
              value={token}
              onChange={(event) => {
                setToken(event.currentTarget.value);
                setWrong(undefined);
              }}
              error={wrong}
              autoComplete="off"
              spellCheck={false}
              data-autofocus
              autoFocus
              required
            />
            <Button type="submit" loading={busy}>
              Sign in
            </Button>
            <Hint size="xs">The token stays in this tab and is only sent to this coordinator.</Hint>
          </Stack>
        </form>
      </Paper>
    </Center>
  );
}

/// Why the coordinator does not take the token, if it does not.
async function refusal(token: string): Promise<string | undefined> {
  try {
    const response = await fetch('/api/fleet/whoami', { headers: { Authorization: `Bearer ${token}` } });
    if (!response.ok)
      return Problem.of(response.status, await response.json().catch(() => undefined)).message;
    const me = (await response.json()) as WhoAmI;
    if (me.kind !== 'user' || me.role === 'worker') {
      return MACHINE_TOKEN;
    }
    return undefined;
  } catch (cause) {
    return Problem.unreachable(cause, 'try again').message;
  }
}

import { Anchor, Button, Code, Stack, Text, Title } from '@mantine/core';
import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { Problem } from '../api/problem';
import { Loading } from '../ui/States';
import { isMissingChunk } from './loadChunk';

export function NotFound() {
  return (
    <Stack align="flex-start">
      <Title order={1}>There is no such page</Title>
      <Text>
        Perhaps the link was cut off.{' '}
        <Anchor component={Link} to="/">
          The fleet
        </Anchor>{' '}
        is a good place to start.
      </Text>
    </Stack>
  );
}

/// Its script is still being fetched.
export function PageOnItsWay() {
  return <Loading what="the page" />;
}

/// A bug in a page costs that page only.
export function PageCrashed({ error, reset }: ErrorComponentProps) {
  if (isMissingChunk(error)) return <PartMissing error={error} />;
  return (
    <Stack align="flex-start" role="alert">
      <Title order={1}>This page broke</Title>
      <Text>The coordinator is not affected. What went wrong:</Text>
      <Code block>{Problem.from(error).message}</Code>
      <Button onClick={reset}>Try again</Button>
    </Stack>
  );
}

/// Trying again would find the same failure: it is kept until the page is loaded anew.
function PartMissing({ error }: { error: Error }) {
  return (
    <Stack align="flex-start" role="alert">
      <Title order={1}>A part of this page did not come</Title>
      <Text>
        Perhaps the coordinator was upgraded while the page was open. Loading the page anew brings it; you
        stay signed in.
      </Text>
      <Code block>{error.message}</Code>
      <Button onClick={() => location.reload()}>Load the page anew</Button>
    </Stack>
  );
}

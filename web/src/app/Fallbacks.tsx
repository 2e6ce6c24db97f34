import { Anchor, Button, Code, Stack, Text, Title } from '@mantine/core';
import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { Problem } from '../api/problem';
import { Loading } from '../ui/States';
import { isMissingChunk } from './loadChunk';

export function NotFound() {
  return (
    <Stack align="flex-start">
      <Title order={1}>Page not found</Title>
      <Text>
        The link may be incomplete.{' '}
        <Anchor component={Link} to="/">
          Go to the fleet
        </Anchor>
      </Text>
    </Stack>
  );
}

/// Its script is still loading.
export function PageLoading() {
  return <Loading what="the page" />;
}

/// A bug in one page costs that page only.
export function PageCrashed({ error, reset }: ErrorComponentProps) {
  if (isMissingChunk(error)) return <PartMissing error={error} />;
  return (
    <Stack align="flex-start" role="alert">
      <Title order={1}>This page crashed</Title>
      <Text>The coordinator is not affected. The error was:</Text>
      <Code block>{Problem.from(error).message}</Code>
      <Button onClick={reset}>Try again</Button>
    </Stack>
  );
}

/// Trying again would find the same failure: browsers keep it until the page is reloaded.
function PartMissing({ error }: { error: Error }) {
  return (
    <Stack align="flex-start" role="alert">
      <Title order={1}>Part of this page could not be loaded</Title>
      <Text>
        The coordinator may have been upgraded while the page was open. Reload the page; you stay signed in.
      </Text>
      <Code block>{error.message}</Code>
      <Button onClick={() => location.reload()}>Reload the page</Button>
    </Stack>
  );
}

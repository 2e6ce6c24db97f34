import { Anchor, Button, Code, Stack, Text, Title } from '@mantine/core';
import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { Problem } from '../api/problem';
import { Loading } from '../ui/States';

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
  return (
    <Stack align="flex-start" role="alert">
      <Title order={1}>This page broke</Title>
      <Text>The coordinator is not affected. What went wrong:</Text>
      <Code block>{Problem.from(error).message}</Code>
      <Button onClick={reset}>Try again</Button>
    </Stack>
  );
}

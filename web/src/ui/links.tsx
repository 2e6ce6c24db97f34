// Mantine's links and buttons that go to a page of ours: a plain click stays in the page, and addresses are typed.

import { Anchor, type AnchorProps, Button, type ButtonProps } from '@mantine/core';
import { createLink, useRouter } from '@tanstack/react-router';
import type { ComponentPropsWithRef, MouseEvent } from 'react';

type A = Omit<ComponentPropsWithRef<'a'>, 'color' | 'style'>;

function PlainAnchor(props: AnchorProps & A) {
  return <Anchor {...props} />;
}

function PlainButton(props: ButtonProps & A) {
  return <Button component="a" {...props} />;
}

/// For a plain link to a job, where there are too many for the router's own: each of those computes its address, listens for
/// preload hints and subscribes to the router.
export function usePlainJobLink(id: string) {
  const router = useRouter();
  const onClick = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    void router.navigate({ to: '/jobs/$id', params: { id }, search: {} });
  };
  return { href: `/jobs/${encodeURIComponent(id)}`, onClick };
}

export const AnchorLink = createLink(PlainAnchor);
export const ButtonLink = createLink(PlainButton);

// Mantine's links and buttons that go to a page of ours: a plain click stays in the page, and addresses are typed.

import { Anchor, type AnchorProps, Button, type ButtonProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { ComponentPropsWithRef } from 'react';

type A = Omit<ComponentPropsWithRef<'a'>, 'color' | 'style'>;

function PlainAnchor(props: AnchorProps & A) {
  return <Anchor {...props} />;
}

function PlainButton(props: ButtonProps & A) {
  return <Button component="a" {...props} />;
}

export const AnchorLink = createLink(PlainAnchor);
export const ButtonLink = createLink(PlainButton);

import { Button, Group, Stack, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { SmallButton } from '../../ui/Basics';
import { Note } from '../../ui/Note';
import { visible } from '../../ui/visible';
import { type DraftPlace, dropDraft, loadDraft, productOf } from './draft';

/// There is a saved draft, and the link was for another product: the choice decides whose budget pays.
export function DraftChoice({
  place,
  product,
  children,
}: {
  place: DraftPlace;
  /// The product in the link.
  product?: string;
  children: ReactNode;
}) {
  const navigate = useNavigate({ from: '/new' });
  const [kept, setKept] = useState(() => loadDraft(place));
  if (!kept || product === undefined || productOf(kept) === product) return children;
  const name = kept.form.name.trim();
  const other = productOf(kept);
  const whose = other
    ? `is for ${visible(other)}`
    : kept.text === null
      ? 'names no product'
      : 'has an edited manifest';
  const start = () => {
    dropDraft(place);
    setKept(undefined);
  };
  return (
    <Note tone="warn" title="There is a saved draft">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          {`${name ? `“${visible(name)}”` : 'The draft'} ${whose}, and you followed a link for ${visible(product)}. Starting over discards the draft.`}
        </Text>
        <Group gap="xs">
          <Button size="xs" onClick={() => void navigate({ search: {}, replace: true })}>
            Continue the draft
          </Button>
          <SmallButton onClick={start}>Start over for {visible(product)}</SmallButton>
        </Group>
      </Stack>
    </Note>
  );
}

import { Button, Group, Stack, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { Note } from '../../ui/Note';
import { visible } from '../../ui/visible';
import { type DraftPlace, dropDraft, loadDraft, productOf } from './draft';

/// A draft is kept, and the link here was for another product: which of the two is meant decides whose budget pays.
export function KeptOrNew({
  place,
  product,
  children,
}: {
  place: DraftPlace;
  /// The one that the link named.
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
      : 'is edited by hand';
  const start = () => {
    dropDraft(place);
    setKept(undefined);
  };
  return (
    <Note tone="warn" title="A draft is kept here">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          {`${name ? `“${visible(name)}”` : 'It'} ${whose}, and you came to make a job for ${visible(product)}. Starting anew drops it.`}
        </Text>
        <Group gap="xs">
          <Button size="xs" onClick={() => void navigate({ search: {}, replace: true })}>
            Go on with the draft
          </Button>
          <Button size="xs" variant="default" onClick={start}>
            Start for {visible(product)}
          </Button>
        </Group>
      </Stack>
    </Note>
  );
}

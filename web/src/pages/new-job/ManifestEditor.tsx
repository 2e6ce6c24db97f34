import { Group, Stack, Textarea } from '@mantine/core';
import { Hint, SmallButton } from '../../ui/Basics';
import { ErrorList, Note } from '../../ui/Note';
import type { Draft } from './draft';
import classes from './NewJob.module.css';
import { manifestText } from './send';
import type { Plan } from './usePlan';

/// The file that would be submitted. Edits go back into the form where the form can express them.
export function ManifestEditor({
  draft,
  plan,
  setText,
  back,
}: {
  draft: Draft;
  plan: Plan;
  setText: (text: string) => void;
  back: () => void;
}) {
  const edited = draft.text !== null;
  return (
    <Stack gap="sm">
      <Textarea
        label="Manifest"
        description="Markdown with YAML front matter. Once edited, this is submitted instead of the form."
        classNames={{ input: classes.code }}
        autosize
        minRows={16}
        maxRows={40}
        spellCheck={false}
        value={manifestText(draft)}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {edited && plan.others.length > 0 && (
        <Note tone="bad" title="The manifest has errors" urgent>
          <ErrorList errors={plan.others} />
        </Note>
      )}
      {edited && (
        <Group justify="space-between">
          <Hint>Edited: this is submitted instead of the form.</Hint>
          <SmallButton onClick={back}>Back to the form</SmallButton>
        </Group>
      )}
    </Stack>
  );
}

import { ActionIcon, Button, Group, Input, Stack, Textarea } from '@mantine/core';
import { useId } from 'react';
import { Icon } from '../../ui/Icon';
import classes from './NewJob.module.css';

/// A list of commands; each may have several lines.
export function CommandsInput({
  value,
  onChange,
  error,
}: {
  value: string[];
  onChange: (commands: string[]) => void;
  error?: string;
}) {
  const id = useId();
  return (
    <Input.Wrapper
      label="Verify"
      description="Commands that must pass for the run to succeed"
      error={error}
      labelElement="div"
      labelProps={{ id }}
    >
      <Stack gap={6} mt={4} role="group" aria-labelledby={id}>
        {value.map((command, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a command is known by its place, and two may be the same
          <Group key={index} gap={6} wrap="nowrap" align="flex-start">
            <Textarea
              className={classes.grow}
              classNames={{ input: classes.code }}
              autosize
              minRows={1}
              maxRows={8}
              value={command}
              aria-label={`Verify command ${index + 1}`}
              placeholder="cargo test"
              onChange={(event) => onChange(value.with(index, event.currentTarget.value))}
            />
            <ActionIcon
              variant="default"
              size="lg"
              aria-label={`Remove verify command ${index + 1}`}
              onClick={() => onChange(value.toSpliced(index, 1))}
            >
              <Icon name="cross" />
            </ActionIcon>
          </Group>
        ))}
        <div>
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<Icon name="plus" size={12} />}
            onClick={() => onChange([...value, ''])}
          >
            Add a command
          </Button>
        </div>
      </Stack>
    </Input.Wrapper>
  );
}

import { Input, SegmentedControl, Text, Textarea } from '@mantine/core';
import { useId, useState } from 'react';
import { Markdown } from '../../ui/Markdown';
import classes from './NewJob.module.css';

/// What is to be done, in Markdown; the preview is the coordinator's.
export function BodyEditor({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (text: string) => void;
  error?: string;
}) {
  const [view, setView] = useState('write');
  const id = useId();
  return (
    <Input.Wrapper error={error}>
      <div className={classes.between}>
        <Input.Label htmlFor={id}>What is to be done</Input.Label>
        <SegmentedControl
          size="xs"
          aria-label="Body"
          value={view}
          onChange={setView}
          data={[
            { value: 'write', label: 'Write' },
            { value: 'preview', label: 'Preview' },
          ]}
        />
      </div>
      {view === 'write' ? (
        <Textarea
          id={id}
          classNames={{ input: classes.code }}
          placeholder="Markdown. The engine reads it byte for byte."
          autosize
          minRows={8}
          maxRows={30}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      ) : (
        <div className={classes.preview}>
          {value.trim() === '' ? (
            <Text size="sm" c="dimmed">
              Nothing is written yet.
            </Text>
          ) : (
            <Markdown text={value} />
          )}
        </div>
      )}
    </Input.Wrapper>
  );
}

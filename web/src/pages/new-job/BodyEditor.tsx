import { Input, Textarea } from '@mantine/core';
import { useId, useState } from 'react';
import { Choice, Hint } from '../../ui/Basics';
import { Markdown } from '../../ui/Markdown';
import classes from './NewJob.module.css';

/// The prompt, in Markdown; the coordinator renders the preview.
export function BodyEditor({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (text: string) => void;
  error?: string;
}) {
  const [view, setView] = useState<'write' | 'preview'>('write');
  const id = useId();
  return (
    <Input.Wrapper error={error}>
      <div className={classes.between}>
        <Input.Label htmlFor={id}>Prompt</Input.Label>
        <Choice
          label="Prompt view"
          value={view}
          words={{ write: 'Write', preview: 'Preview' }}
          onChange={setView}
        />
      </div>
      {view === 'write' ? (
        <Textarea
          id={id}
          classNames={{ input: classes.code }}
          placeholder="Describe the task in Markdown. The engine gets it as written."
          autosize
          minRows={8}
          maxRows={30}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      ) : (
        <div className={classes.preview}>
          {value.trim() === '' ? <Hint>Nothing to preview yet.</Hint> : <Markdown text={value} />}
        </div>
      )}
    </Input.Wrapper>
  );
}

import { Autocomplete, TagsInput, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { plural } from '../../ui/format';
import type { Choice } from './fleet';
import classes from './NewJob.module.css';

interface Shown {
  label: string;
  description?: ReactNode;
  error?: string;
  placeholder?: string;
  choices: Choice[];
}

function Option({ choice, value }: { choice: Choice | undefined; value: string }) {
  return (
    <div className={classes.option}>
      <span>{value}</span>
      {choice && (
        <Text size="xs" c="dimmed" component="span">
          {choice.live === choice.factories.length
            ? plural(choice.live, 'factory', 'factories')
            : `${choice.live} of ${plural(choice.factories.length, 'factory', 'factories')} online`}
        </Text>
      )}
    </div>
  );
}

function optionsOf(choices: Choice[]) {
  const known = new Map(choices.map((choice) => [choice.value, choice]));
  return {
    data: [...known.keys()],
    maxDropdownHeight: 260,
    renderOption: ({ option }: { option: { value: string } }) => (
      <Option value={option.value} choice={known.get(option.value)} />
    ),
  };
}

/// Something that the fleet has, or anything else: a factory that joins later may have it.
export function ChoiceInput({
  choices,
  ...input
}: Shown & { value: string; onChange: (value: string) => void }) {
  return <Autocomplete {...input} {...optionsOf(choices)} />;
}

export function ChoicesInput({
  choices,
  ...input
}: Shown & { value: string[]; onChange: (values: string[]) => void }) {
  // Text that was not confirmed with Enter counts too.
  return <TagsInput {...input} {...optionsOf(choices)} acceptValueOnBlur splitChars={[',', ' ']} />;
}

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

/// Something that the fleet has, or anything else: a factory that joins later may have it.
export function ChoiceInput({
  choices,
  value,
  onChange,
  ...shown
}: Shown & { value: string; onChange: (value: string) => void }) {
  return (
    <Autocomplete
      {...shown}
      data={choices.map((choice) => choice.value)}
      value={value}
      onChange={onChange}
      maxDropdownHeight={260}
      renderOption={({ option }) => (
        <Option value={option.value} choice={choices.find((choice) => choice.value === option.value)} />
      )}
    />
  );
}

export function ChoicesInput({
  choices,
  value,
  onChange,
  ...shown
}: Shown & { value: string[]; onChange: (values: string[]) => void }) {
  return (
    <TagsInput
      {...shown}
      data={choices.map((choice) => choice.value)}
      value={value}
      onChange={onChange}
      // Text that was not confirmed with Enter counts too.
      acceptValueOnBlur
      splitChars={[',', ' ']}
      maxDropdownHeight={260}
      renderOption={({ option }) => (
        <Option value={option.value} choice={choices.find((choice) => choice.value === option.value)} />
      )}
    />
  );
}

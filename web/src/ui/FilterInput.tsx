import { TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { SmallButton } from './Basics';
import { matchesWords } from './filter';
import { plural } from './format';
import { Icon } from './Icon';
import { Empty } from './States';

interface FilterInputProps {
  label: string;
  placeholder: string;
  value: string;
  onType: (text: string) => void;
  className?: string;
}

/// The field that `/` focuses. Esc clears it.
export function FilterInput({ label, placeholder, value, onType, className }: FilterInputProps) {
  return (
    <TextInput
      data-filter
      size="xs"
      aria-label={label}
      placeholder={placeholder}
      leftSection={<Icon name="search" size={12} />}
      value={value}
      onChange={(event) => onType(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onType('');
      }}
      className={className}
    />
  );
}

interface FilteredProps<T> extends Omit<FilterInputProps, 'value' | 'onType'> {
  all: readonly T[];
  /// What one of them is called.
  one: string;
  /// What the words of the filter are looked for in.
  text: (thing: T) => string;
  children: (shown: T[]) => ReactNode;
}

/// A list below its filter.
export function Filtered<T>({ all, one, text, children, ...input }: FilteredProps<T>) {
  const [filter, setFilter] = useState('');
  const shown = all.filter((thing) => matchesWords(filter, [text(thing)]));
  return (
    <>
      <FilterInput {...input} value={filter} onType={setFilter} />
      {shown.length > 0 ? (
        children(shown)
      ) : (
        <Empty title={`No ${one}s match`}>
          <SmallButton onClick={() => setFilter('')}>Show all {plural(all.length, one)}</SmallButton>
        </Empty>
      )}
    </>
  );
}

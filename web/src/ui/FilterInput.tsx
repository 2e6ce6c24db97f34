import { TextInput } from '@mantine/core';
import { Icon } from './Icon';

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

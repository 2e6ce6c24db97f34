import { TextInput } from '@mantine/core';
import { type ReactNode, type SyntheticEvent, useEffect, useRef } from 'react';

/// What a form says that may not go off like this.
export const HALF_TYPED = 'Incomplete: enter a date and a time, or clear it';

interface LocalTimeProps {
  label: string;
  description?: ReactNode;
  /// As the browser gives it: `2030-01-31T09:00`, and nothing where nothing whole is typed.
  value: string;
  /// Something is typed that is no time yet. The browser calls that empty, and an empty one means "now".
  half: boolean;
  error?: string;
  onChange: (value: string, half: boolean) => void;
}

/// A day and a time in the reader's own zone.
export function LocalTime({ value, half, error, onChange, ...shown }: LocalTimeProps) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // The form was emptied: what is left of a time goes too.
    if (!half && input.current?.validity.badInput) input.current.value = '';
  }, [half]);
  // No event tells of the first digits, whose value is as empty as before: the keys and leaving the input do.
  const look = ({ currentTarget: now }: SyntheticEvent<HTMLInputElement>) => {
    const isHalf = now.validity.badInput;
    if (now.value !== value || isHalf !== half) onChange(now.value, isHalf);
  };
  return (
    <TextInput
      {...shown}
      ref={input}
      type="datetime-local"
      value={value}
      error={half ? HALF_TYPED : error}
      onChange={look}
      onKeyUp={look}
      onBlur={look}
    />
  );
}

import { TextInput } from '@mantine/core';
import { type ReactNode, type SyntheticEvent, useEffect, useRef } from 'react';

/// The error of a half-typed time.
export const HALF_TYPED = 'Incomplete: enter a date and a time, or clear it';

interface LocalTimeProps {
  label: string;
  description?: ReactNode;
  /// As the browser gives it: `2030-01-31T09:00`, or empty while it is incomplete.
  value: string;
  /// Something incomplete is typed. The browser reports that as empty, which would mean "now".
  half: boolean;
  error?: string;
  onChange: (value: string, half: boolean) => void;
}

/// A date and a time in the local time zone.
export function LocalTime({ value, half, error, onChange, ...shown }: LocalTimeProps) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // The form was cleared: clear an incomplete time too.
    if (!half && input.current?.validity.badInput) input.current.value = '';
  }, [half]);
  // The first digits fire no change event, since the value stays empty: listen to keys and blur as well.
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

import { Button, Group, NativeSelect, Switch, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import type { Flag } from '../../api/types';
import { useMay } from '../../session/useSession';
import { SmallButton } from '../../ui/Basics';
import { CodeText } from '../../ui/CodeText';
import { CommandLine } from '../../ui/CommandLine';
import classes from './Flags.module.css';
import {
  deliveryAbout,
  fieldText,
  flagCommand,
  isDelivery,
  loss,
  pictured,
  readField,
  type Takes,
  takes,
} from './takes';
import { useSetFlag } from './useSetFlag';

/// A flag with its field. Nothing happens before "Set", which shows its command beside it.
export function FlagRow({ flag }: { flag: Flag }) {
  const may = useMay('admin');
  const { set, busy } = useSetFlag();
  // Undefined while nobody types: the field then follows the coordinator.
  const [typed, setTyped] = useState<string>();
  const accepted = takes(flag.takes);
  const text = typed ?? fieldText(flag.value);
  const read = readField(text, accepted);
  const changed =
    typed !== undefined && (read.error !== undefined || fieldText(read.value) !== fieldText(flag.value));
  // What was typed since it was sent stays.
  const forget = () => setTyped((now) => (now === typed ? undefined : now));
  const save = async (event: FormEvent) => {
    event.preventDefault();
    if (!changed || read.error !== undefined) return;
    if (await set(flag.name, read.value, read.value, flag.value)) forget();
  };
  const reset = async () => {
    if (await set(flag.name, null, flag.default, flag.value)) forget();
  };
  return (
    <li className={classes.row}>
      <div>
        <div className={classes.name}>{flag.name}</div>
        <div className={classes.about}>
          <CodeText text={flag.about} />
        </div>
      </div>
      <form className={classes.form} onSubmit={(event) => void save(event)} noValidate>
        <Field
          flag={flag}
          what={accepted}
          text={text}
          error={changed ? read.error : undefined}
          onType={setTyped}
          disabled={!may}
        />
        <div className={classes.note}>
          {isDelivery(flag.name) && deliveryAbout(text)}
          {accepted.kind === 'integer' &&
            [pictured(flag, read.value), flag.takes].filter(Boolean).join(' · ')}
        </div>
        {changed && (
          <Group gap="xs">
            <Button type="submit" size="xs" loading={busy} disabled={read.error !== undefined}>
              {loss(flag.name, flag.value, read.value) ? 'Set…' : 'Set'}
            </Button>
            <SmallButton onClick={() => setTyped(undefined)}>Undo</SmallButton>
            {read.error === undefined && <CommandLine command={flagCommand(flag.name, read.value)} />}
          </Group>
        )}
        {!changed && may && !flag.isDefault && (
          <div className={classes.note}>
            To reset it to {fieldText(flag.default)}: <CommandLine command={flagCommand(flag.name, null)} />
          </div>
        )}
      </form>
      <div className={classes.default}>
        {flag.isDefault ? (
          'default'
        ) : (
          <>
            <span>
              {flag.name.includes('.') ? 'fleet-wide' : 'default'}: {fieldText(flag.default)}
            </span>
            {may && (
              <Button
                size="compact-xs"
                variant="subtle"
                loading={busy}
                onClick={() => void reset()}
                aria-label={`Reset ${flag.name} to ${fieldText(flag.default)}`}
              >
                Reset
              </Button>
            )}
          </>
        )}
      </div>
    </li>
  );
}

interface FieldProps {
  flag: Flag;
  what: Takes;
  text: string;
  error: string | undefined;
  disabled: boolean;
  onType: (text: string) => void;
}

function Field({ flag, what, text, error, disabled, onType }: FieldProps) {
  switch (what.kind) {
    case 'bool':
      return (
        <Switch
          checked={text === 'true'}
          disabled={disabled}
          onChange={(event) => onType(String(event.currentTarget.checked))}
          label={text === 'true' ? 'on' : 'off'}
          aria-label={flag.name}
        />
      );
    case 'choice':
      return (
        <NativeSelect
          size="xs"
          aria-label={flag.name}
          data={what.words}
          value={text}
          disabled={disabled}
          onChange={(event) => onType(event.currentTarget.value)}
        />
      );
    default:
      return (
        <TextInput
          size="xs"
          aria-label={`${flag.name}: ${flag.takes}`}
          value={text}
          error={error}
          disabled={disabled}
          inputMode={what.kind === 'integer' ? 'numeric' : undefined}
          autoComplete="off"
          onChange={(event) => onType(event.currentTarget.value)}
        />
      );
  }
}

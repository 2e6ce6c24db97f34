import { ActionIcon, Button, Switch, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { notifyProblem } from '../../../ui/Confirm';
import { count, percent } from '../../../ui/format';
import { Icon } from '../../../ui/Icon';
import { saveBlob } from '../../../ui/saveBlob';
import classes from './LogView.module.css';
import type { Match } from './logBuffer';
import { wholeLog } from './useLog';

interface LogToolsProps {
  jobId: string;
  epoch: number;
  words: string;
  setWords: (words: string) => void;
  found: { matches: Match[]; more: boolean };
  place: number;
  go: (place: number) => void;
  follow: boolean;
  setFollow: (follow: boolean) => void;
  wrap: boolean;
  setWrap: (wrap: boolean) => void;
}

export function LogTools(props: LogToolsProps) {
  const { found, place, go } = props;
  const none = found.matches.length === 0;
  return (
    <div className={classes.tools}>
      <TextInput
        className={classes.search}
        size="xs"
        type="search"
        placeholder="Search the log"
        aria-label="Search the log"
        data-filter
        leftSection={<Icon name="search" size={14} />}
        value={props.words}
        onChange={(event) => props.setWords(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') go(event.shiftKey ? place - 1 : place + 1);
          if (event.key === 'ArrowDown') go(place + 1);
          if (event.key === 'ArrowUp') go(place - 1);
          if (event.key === 'Escape') {
            props.setWords('');
            event.currentTarget.blur();
          }
          if (['ArrowDown', 'ArrowUp'].includes(event.key)) event.preventDefault();
        }}
      />
      <ActionIcon
        variant="default"
        size={30}
        aria-label="Previous match"
        disabled={none}
        onClick={() => go(place - 1)}
      >
        ↑
      </ActionIcon>
      <ActionIcon
        variant="default"
        size={30}
        aria-label="Next match"
        disabled={none}
        onClick={() => go(place + 1)}
      >
        ↓
      </ActionIcon>
      <Text size="xs" c="dimmed" className={classes.count} role="status">
        {props.words === '' ? '' : matchCount(found, place)}
      </Text>
      <Switch
        size="xs"
        label="Follow"
        checked={props.follow}
        onChange={(event) => props.setFollow(event.currentTarget.checked)}
      />
      <Switch
        size="xs"
        label="Wrap"
        checked={props.wrap}
        onChange={(event) => props.setWrap(event.currentTarget.checked)}
      />
      <Download jobId={props.jobId} epoch={props.epoch} />
    </div>
  );
}

function matchCount({ matches, more }: { matches: Match[]; more: boolean }, place: number): string {
  if (matches.length === 0) return 'no matches';
  const all = `${count(matches.length)}${more ? '+' : ''}`;
  return place < 0 ? `${all} ${matches.length === 1 ? 'match' : 'matches'}` : `${count(place + 1)} of ${all}`;
}

function Download({ jobId, epoch }: { jobId: string; epoch: number }) {
  const [share, setShare] = useState<number>();
  const download = async () => {
    setShare(0);
    try {
      saveBlob(await wholeLog(jobId, epoch, setShare), `${jobId}-run-${epoch}.log`);
    } catch (error) {
      notifyProblem('Could not download the log', error);
    } finally {
      setShare(undefined);
    }
  };
  return (
    <Button
      size="xs"
      variant="default"
      leftSection={<Icon name="down" size={14} />}
      disabled={share !== undefined}
      onClick={() => void download()}
    >
      {share === undefined ? 'Download' : percent(share)}
    </Button>
  );
}

import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { factoriesQuery, metricsQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { labelOf, PRIORITY, STAGE, STAGES, wordsOf } from '../../api/vocabulary';
import { type JobsSearch, words } from '../../app/search';
import { count } from '../../ui/format';
import { Icon } from '../../ui/Icon';
import classes from './Filters.module.css';
import { byStage, chips, toggled } from './filter';

interface FiltersProps {
  search: JobsSearch;
  change(next: JobsSearch, how?: 'typing'): void;
  /// The loaded jobs: their repositories can be chosen too.
  rows: readonly Job[];
}

export function Filters({ search, change, rows }: FiltersProps) {
  const { data: metrics } = useQuery(metricsQuery());
  const { data: factories } = useQuery(factoriesQuery());
  const [opened, { toggle }] = useDisclosure();
  const [typed, type] = useTyped(search.name ?? '', (name) =>
    change({ ...search, name: name || undefined }, 'typing'),
  );
  const counts = byStage(metrics, search.product);
  const repos = [
    ...(factories?.factories ?? []).flatMap((factory) => factory.repos.map((repo) => repo.name)),
    ...rows.flatMap((job) => (job.repo ? [job.repo] : [])),
  ];
  const hidden = chips(search).filter((chip) => chip.filter !== 'name').length;

  return (
    <search className={classes.filters} aria-label="Jobs">
      <div className={classes.first}>
        <TextInput
          data-filter
          size="xs"
          className={classes.name}
          leftSection={<Icon name="search" />}
          aria-label="Name contains"
          placeholder="Name contains…"
          maxLength={500}
          value={typed}
          onChange={(event) => type(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Escape') event.currentTarget.blur();
          }}
        />
        <Button
          size="xs"
          variant="default"
          hiddenFrom="sm"
          onClick={toggle}
          aria-expanded={opened}
          aria-controls="job-filters"
        >
          Filters{hidden > 0 ? ` (${hidden})` : ''}
        </Button>
      </div>
      <div id="job-filters" className={classes.rest} data-opened={opened || undefined}>
        <fieldset className={classes.toggles}>
          <legend>Stage</legend>
          {STAGES.map((stage) => (
            <Toggle
              key={stage}
              on={words(search.stage).includes(stage)}
              flip={() => change({ ...search, stage: toggled(search.stage, stage) })}
              word={labelOf(STAGE, stage)}
              figure={metrics ? count(counts.get(stage) ?? 0) : undefined}
            />
          ))}
          <Toggle
            on={search.needsInput === 'true'}
            flip={() => change({ ...search, needsInput: search.needsInput === 'true' ? undefined : 'true' })}
            word="needs input"
          />
        </fieldset>
        <fieldset className={classes.toggles}>
          <legend>Priority</legend>
          {wordsOf(PRIORITY).map((priority) => (
            <Toggle
              key={priority}
              on={words(search.priority).includes(priority)}
              flip={() => change({ ...search, priority: toggled(search.priority, priority) })}
              word={PRIORITY[priority].label}
            />
          ))}
        </fieldset>
        <Choice
          label="Product"
          any="any product"
          value={search.product}
          from={(metrics?.products ?? []).map((product) => product.productId)}
          choose={(product) => change({ ...search, product })}
        />
        <Choice
          label="Repository"
          any="any repository"
          value={search.repo}
          from={repos}
          choose={(repo) => change({ ...search, repo })}
        />
        <Choice
          label="Factory"
          any="any factory"
          value={search.factory}
          from={(factories?.factories ?? []).map((factory) => factory.id)}
          choose={(factory) => change({ ...search, factory })}
        />
      </div>
    </search>
  );
}

function Toggle({ on, flip, word, figure }: { on: boolean; flip(): void; word: string; figure?: string }) {
  return (
    <button type="button" className={classes.toggle} aria-pressed={on} onClick={flip}>
      {word}
      {figure !== undefined && <span className={classes.figure}>{figure}</span>}
    </button>
  );
}

interface ChoiceProps {
  label: string;
  any: string;
  value: string | undefined;
  from: string[];
  choose(value: string | undefined): void;
}

/// What there is now, and what the address names, even when that is gone.
function Choice({ label, any, value, from, choose }: ChoiceProps) {
  const known = [...new Set(value === undefined ? from : [...from, value])].sort();
  return (
    <NativeSelect
      size="xs"
      className={classes.choice}
      aria-label={label}
      value={value ?? ''}
      onChange={(event) => choose(event.currentTarget.value || undefined)}
      data={[{ value: '', label: any }, ...known.map((name) => ({ value: name, label: name }))]}
    />
  );
}

/// How long to wait for the next letter.
const PAUSE = 250;

/// A text that is typed here and kept elsewhere: reported when the typing pauses, followed when it changes there.
export function useTyped(value: string, report: (value: string) => void): [string, (value: string) => void] {
  const [typed, setTyped] = useState(value);
  const reported = useRef(value);
  const onPause = useEffectEvent(report);
  useEffect(() => {
    // An older value that comes back must not undo the letters since.
    if (value === reported.current) return;
    reported.current = value;
    setTyped(value);
  }, [value]);
  useEffect(() => {
    if (typed === reported.current) return;
    const timer = setTimeout(() => {
      reported.current = typed;
      onPause(typed);
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [typed]);
  return [typed, setTyped];
}

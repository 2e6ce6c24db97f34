import { Button, Group } from '@mantine/core';
import { Icon } from '../../ui/Icon';
import { stageWord } from '../../ui/StageBadge';
import { chips, withoutChip } from './filter';
import type { FilterName, JobsSearch } from './search';

const WORDS: Record<FilterName, string> = {
  stage: 'stage',
  priority: 'priority',
  product: 'product',
  repo: 'repository',
  factory: 'held by',
  parent: 'below',
  name: 'name has',
};

/// What the list is narrowed to, each to be taken away with one click.
export function FilterChips({ search, change }: { search: JobsSearch; change(next: JobsSearch): void }) {
  const shown = chips(search);
  if (shown.length === 0) return null;
  return (
    <Group gap={6} mb="xs" role="group" aria-label="Filters in use">
      {shown.map((chip) => {
        const text = `${WORDS[chip.filter]} ${chip.filter === 'stage' ? stageWord(chip.word) : chip.word}`;
        return (
          <Button
            key={`${chip.filter}-${chip.word}`}
            size="compact-xs"
            radius="xl"
            variant="default"
            maw="100%"
            rightSection={<Icon name="cross" size={10} />}
            onClick={() => change(withoutChip(search, chip))}
            aria-label={`Remove the filter ${text}`}
          >
            {text}
          </Button>
        );
      })}
      <Button size="compact-xs" variant="subtle" onClick={() => change({})}>
        Clear all
      </Button>
    </Group>
  );
}

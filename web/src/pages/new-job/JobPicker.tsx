// Finds jobs by a part of their name or by their id.

import { type ComboboxParsedItem, MultiSelect, Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { answer, api, inProduct } from '../../api/client';
import type { Job } from '../../api/types';
import { labelOf, STAGE } from '../../api/vocabulary';
import { visible } from '../../ui/visible';
import type { PickedJob } from './form';

const PLACEHOLDER = 'Search by name or paste an ID';
const LIMIT = '20';
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/i;

function useJobSearch(product: string, ignored: boolean) {
  const [search, setSearch] = useState('');
  const [wanted] = useDebouncedValue(ignored ? '' : search.trim(), 250);
  const { data: found, isError } = useQuery({
    queryKey: ['jobs', 'picker', product, wanted],
    queryFn: async ({ signal }): Promise<Job[]> => {
      if (ID.test(wanted)) {
        const path = { id: wanted.toUpperCase() };
        return [await answer(api.GET('/api/fleet/jobs/{id}', { params: { path }, signal }))];
      }
      const query = { limit: LIMIT, ...(wanted ? { name: wanted } : {}) };
      const params = { query, header: inProduct(product) };
      return (await answer(api.GET('/api/fleet/jobs', { params, signal }))).jobs;
    },
    placeholderData: keepPreviousData,
  });
  const searching = {
    searchable: true,
    searchValue: search,
    onSearchChange: setSearch,
    // The coordinator has filtered them.
    filter: ({ options }: { options: ComboboxParsedItem[] }) => options,
    nothingFoundMessage: isError ? 'Could not search jobs' : 'No matching jobs',
  };
  return { found, searching };
}

/// Names may repeat; the end of the id distinguishes them.
function jobLabel(job: { id: string; name: string; stage?: string }): string {
  if (job.name === job.id) return job.id;
  const tail = job.id.slice(-6);
  return job.stage
    ? `${visible(job.name)} · ${labelOf(STAGE, job.stage)} · ${tail}`
    : `${visible(job.name)} · ${tail}`;
}

interface Shown {
  label: string;
  description?: ReactNode;
  error?: string;
  product: string;
}

export function JobsPicker({
  value,
  onChange,
  product,
  ...shown
}: Shown & { value: PickedJob[]; onChange: (jobs: PickedJob[]) => void }) {
  const { found, searching } = useJobSearch(product, false);
  const known = byId(value, found);
  return (
    <MultiSelect
      {...shown}
      data={options(known)}
      value={value.map((job) => job.id)}
      onChange={(ids) => onChange(ids.map((id) => ({ id, name: known.get(id)?.name ?? id })))}
      {...searching}
      hidePickedOptions
      placeholder={value.length === 0 ? PLACEHOLDER : undefined}
    />
  );
}

export function JobPicker({
  value,
  onChange,
  product,
  ...shown
}: Shown & { value: PickedJob | null; onChange: (job: PickedJob | null) => void }) {
  // With a job chosen the input holds its label, which is not a search.
  const { found, searching } = useJobSearch(product, value !== null);
  const known = byId(value ? [value] : [], found);
  return (
    <Select
      {...shown}
      data={options(known)}
      value={value?.id ?? null}
      onChange={(id) => onChange(id ? { id, name: known.get(id)?.name ?? id } : null)}
      {...searching}
      clearable
      clearButtonProps={{ 'aria-label': `Clear ${shown.label}` }}
      placeholder={PLACEHOLDER}
    />
  );
}

function byId(chosen: PickedJob[], found: Job[] | undefined): Map<string, PickedJob & { stage?: string }> {
  return new Map([...(found ?? []), ...chosen].map((job) => [job.id, job]));
}

function options(known: Map<string, PickedJob & { stage?: string }>) {
  return [...known.values()].map((job) => ({ value: job.id, label: jobLabel(job) }));
}

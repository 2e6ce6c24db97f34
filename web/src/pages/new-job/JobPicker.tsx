// Finds jobs by a part of their name or by their id.

import { MultiSelect, Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { answer, api, inProduct } from '../../api/client';
import type { Job } from '../../api/types';
import { labelOf, STAGE } from '../../api/vocabulary';
import { visible } from '../../ui/visible';
import type { PickedJob } from './form';

const LIMIT = '20';
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/i;

function useJobSearch(text: string, product: string) {
  const [wanted] = useDebouncedValue(text.trim(), 250);
  return useQuery({
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
  const [search, setSearch] = useState('');
  const found = useJobSearch(search, product);
  const known = byId(value, found.data);
  return (
    <MultiSelect
      {...shown}
      data={options(known)}
      value={value.map((job) => job.id)}
      onChange={(ids) => onChange(ids.map((id) => ({ id, name: known.get(id)?.name ?? id })))}
      searchable
      searchValue={search}
      onSearchChange={setSearch}
      filter={({ options }) => options}
      hidePickedOptions
      nothingFoundMessage={found.isError ? 'Could not search jobs' : 'No matching jobs'}
      placeholder={value.length === 0 ? 'Search by name or paste an ID' : undefined}
    />
  );
}

export function JobPicker({
  value,
  onChange,
  product,
  ...shown
}: Shown & { value: PickedJob | null; onChange: (job: PickedJob | null) => void }) {
  const [search, setSearch] = useState('');
  // With a job chosen the input holds its label, which is not a search.
  const found = useJobSearch(value ? '' : search, product);
  const known = byId(value ? [value] : [], found.data);
  return (
    <Select
      {...shown}
      data={options(known)}
      value={value?.id ?? null}
      onChange={(id) => onChange(id ? { id, name: known.get(id)?.name ?? id } : null)}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': `Clear ${shown.label}` }}
      searchValue={search}
      onSearchChange={setSearch}
      filter={({ options }) => options}
      nothingFoundMessage={found.isError ? 'Could not search jobs' : 'No matching jobs'}
      placeholder="Search by name or paste an ID"
    />
  );
}

function byId(chosen: PickedJob[], found: Job[] | undefined): Map<string, PickedJob & { stage?: string }> {
  return new Map([...(found ?? []), ...chosen].map((job) => [job.id, job]));
}

function options(known: Map<string, PickedJob & { stage?: string }>) {
  return [...known.values()].map((job) => ({ value: job.id, label: jobLabel(job) }));
}

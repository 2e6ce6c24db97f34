import { Alert, Group, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { metricsQuery } from '../../api/queries';
import { CommandLine } from '../../ui/CommandLine';
import { count } from '../../ui/format';
import { Icon } from '../../ui/Icon';
import { ButtonLink } from '../../ui/links';
import { Loading, ProblemAlert } from '../../ui/States';
import { BatchBar } from './BatchBar';
import { BatchReport, type Report } from './BatchReport';
import { FilterChips } from './FilterChips';
import { Filters } from './Filters';
import { listCommand, total } from './filter';
import classes from './JobsPage.module.css';
import { JobTable } from './JobTable';
import { NoJobs } from './NoJobs';
import type { JobsSearch } from './search';
import { isAny, useJobList } from './useJobList';
import { useSelection } from './useSelection';

const route = getRouteApi('/jobs');

export function JobsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useJobList(search);
  const selection = useSelection(search, list.rows);
  const [report, setReport] = useState<Report>();
  const { data: metrics } = useQuery(metricsQuery());
  const change = (next: JobsSearch, how?: 'typing') =>
    void navigate({ search: next, replace: how === 'typing', resetScroll: true });

  return (
    <>
      <Group justify="space-between" mb="sm" wrap="nowrap">
        <Title order={1} size="h3">
          Jobs
        </Title>
        <ButtonLink
          to="/new"
          search={{ product: search.product }}
          size="xs"
          leftSection={<Icon name="plus" />}
        >
          New job
        </ButtonLink>
      </Group>
      <Filters search={search} change={change} rows={list.rows} />
      <FilterChips search={search} change={change} />
      <div className={classes.about}>
        <span role="status">
          {said(list.rows.length - list.strays, list.query.hasNextPage, total(search, metrics))}
        </span>
        <CommandLine command={listCommand(search)} />
      </div>
      {report && <BatchReport report={report} close={() => setReport(undefined)} />}
      <Listed list={list} search={search} selection={selection} clear={() => change({})} />
      <BatchBar
        chosen={selection.chosen}
        clear={selection.clear}
        finished={(next) => {
          const { done, failed, left } = next.outcome;
          list.replace(done);
          selection.drop(done.map((job) => job.id));
          setReport(failed.length + left.length > 0 ? next : undefined);
        }}
      />
    </>
  );
}

interface ListedProps {
  list: ReturnType<typeof useJobList>;
  search: JobsSearch;
  selection: ReturnType<typeof useSelection>;
  clear(): void;
}

function Listed({ list, search, selection, clear }: ListedProps) {
  const { query, rows, waiting, showWaiting } = list;
  // With nothing on the screen there is nothing that could jump.
  const isNews = rows.length === 0 && isAny(waiting);
  useEffect(() => {
    if (isNews) showWaiting();
  }, [isNews, showWaiting]);
  if (query.isPending) return <Loading what="jobs" />;
  if (rows.length === 0 && query.isError) {
    return <ProblemAlert error={query.error} retry={() => void query.refetch()} />;
  }
  if (rows.length === 0) return <NoJobs search={search} clear={clear} />;
  return (
    <>
      {query.isError && (
        <Alert color="red" mb="sm" role="alert">
          The list could not be read again: {query.error.message}
        </Alert>
      )}
      <JobTable list={list} selection={selection} />
    </>
  );
}

/// How much of the list is there. The whole is known from the figures per stage, or not at all.
function said(loaded: number, more: boolean, all: number | undefined): string {
  const jobs = loaded === 1 ? 'job' : 'jobs';
  if (!more) return `${count(loaded)} ${jobs}`;
  return all !== undefined && all > loaded
    ? `The newest ${count(loaded)} of ${count(all)} jobs`
    : `The newest ${count(loaded)} ${jobs}, more below`;
}

import { Alert, Button, Group, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { metricsQuery } from '../../api/queries';
import { labelOf, STAGE } from '../../api/vocabulary';
import { FILTERS, type JobsSearch } from '../../app/search';
import { PageTitle, SmallButton } from '../../ui/Basics';
import { CommandLine } from '../../ui/CommandLine';
import { count } from '../../ui/format';
import { Icon } from '../../ui/Icon';
import { ButtonLink } from '../../ui/links';
import { Empty, Loading, ProblemAlert } from '../../ui/States';
import { BatchBar, BatchReport, type Report } from './BatchBar';
import { Filters } from './Filters';
import { chips, isFiltered, listCommand, total, withoutChip } from './filter';
import classes from './JobsPage.module.css';
import { JobTable } from './JobTable';
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
        <PageTitle>Jobs</PageTitle>
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
          {listed(list.rows.length - list.strays, list.query.hasNextPage, total(search, metrics))}
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
  // With an empty list there is nothing that could jump.
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
          The list could not be refreshed: {query.error.message}
        </Alert>
      )}
      <JobTable list={list} selection={selection} />
    </>
  );
}

/// How much of the list is loaded. The whole is known from the figures per stage, or not at all.
function listed(loaded: number, more: boolean, all: number | undefined): string {
  const jobs = loaded === 1 ? 'job' : 'jobs';
  if (!more) return `${count(loaded)} ${jobs}`;
  return all !== undefined && all > loaded
    ? `Newest ${count(loaded)} of ${count(all)} jobs`
    : `Newest ${count(loaded)} ${jobs}, more below`;
}

/// The active filters, each removed with one click.
function FilterChips({ search, change }: { search: JobsSearch; change(next: JobsSearch): void }) {
  const shown = chips(search);
  if (shown.length === 0) return null;
  return (
    <Group gap={6} mb="xs" role="group" aria-label="Active filters">
      {shown.map((chip) => {
        const text = `${FILTERS[chip.filter].label} ${chip.filter === 'stage' ? labelOf(STAGE, chip.word) : chip.word}`;
        return (
          <Button
            key={`${chip.filter}-${chip.word}`}
            size="compact-xs"
            radius="xl"
            variant="default"
            maw="100%"
            rightSection={<Icon name="cross" size={10} />}
            onClick={() => change(withoutChip(search, chip))}
            aria-label={`Remove filter: ${text}`}
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

/// Nothing to show, and what to do about it.
function NoJobs({ search, clear }: Pick<ListedProps, 'search' | 'clear'>) {
  if (isFiltered(search)) {
    return (
      <Empty title="No jobs match these filters">
        <Stack align="center">
          <span>Matching jobs appear here automatically.</span>
          <SmallButton onClick={clear}>Clear all filters</SmallButton>
        </Stack>
      </Empty>
    );
  }
  return (
    <Empty title="No jobs yet">
      <Stack align="center">
        <span>Describe a task, and a factory that can run it picks it up.</span>
        <Button component={Link} to="/new" size="xs">
          Create the first job
        </Button>
        <span>Or from a terminal, starting with a commented manifest:</span>
        <CommandLine command="giga job init" />
        <CommandLine command="giga job submit job.md" />
      </Stack>
    </Empty>
  );
}

import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { Problem } from '../../api/problem';
import { jobQuery } from '../../api/queries';
import { isHeld } from '../../api/vocabulary';
import { useTitle } from '../../app/title';
import { PageTitle } from '../../ui/Basics';
import { CommandLine } from '../../ui/CommandLine';
import { sentence } from '../../ui/format';
import { AnchorLink } from '../../ui/links';
import { Loading, ProblemAlert } from '../../ui/States';
import { visible } from '../../ui/visible';
import { JobView } from './JobView';

/// A lease is renewed without an event, so it is fetched this often.
const LEASE_INTERVAL = 5_000;

export function JobPage() {
  const { id } = useParams({ from: '/jobs/$id' });
  const query = useQuery({
    ...jobQuery(id),
    refetchInterval: (one) => (isHeld(one.state.data?.stage) ? LEASE_INTERVAL : false),
  });
  useTitle(query.data && visible(query.data.name));
  // A job that is gone shows that, and not how it once was.
  const status = query.error ? Problem.from(query.error).status : undefined;
  if (status === 404 || status === 400) return <NoSuchJob id={id} error={query.error} />;
  if (query.data) return <JobView key={id} job={query.data} />;
  if (query.error) {
    return (
      <Stack>
        <PageTitle>Job</PageTitle>
        <ProblemAlert error={query.error} retry={() => void query.refetch()} />
        <AllJobs />
      </Stack>
    );
  }
  return (
    <>
      <PageTitle>Job</PageTitle>
      <Loading what="job" />
    </>
  );
}

function NoSuchJob({ id, error }: { id: string; error: unknown }) {
  return (
    <Stack align="flex-start">
      <PageTitle>Job not found</PageTitle>
      <Text>
        {sentence(Problem.from(error).message)}. The link may be incomplete, the job may have been deleted, or
        it belongs to a product that your token does not cover.
      </Text>
      <CommandLine command={`giga job show ${/^[0-9A-Za-z_-]{1,64}$/.test(id) ? id : 'JOB'}`} />
      <AllJobs />
    </Stack>
  );
}

function AllJobs() {
  return <AnchorLink to="/jobs">All jobs</AnchorLink>;
}

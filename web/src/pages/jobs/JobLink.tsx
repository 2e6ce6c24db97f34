import { useRouter } from '@tanstack/react-router';
import type { MouseEvent } from 'react';
import type { Job } from '../../api/types';
import { visible } from '../../ui/visible';
import classes from './JobTable.module.css';

interface JobLinkProps {
  job: Job;
  activate(id: string): void;
}

/// The router's own link works out its address and listens to the router, each for itself: too much for rows that come
/// and go by the dozen while somebody scrolls.
export function JobLink({ job, activate }: JobLinkProps) {
  const router = useRouter();
  const open = (event: MouseEvent) => {
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    void router.navigate({ to: '/jobs/$id', params: { id: job.id } });
  };
  return (
    <a
      href={`/jobs/${encodeURIComponent(job.id)}`}
      className={classes.link}
      data-job={job.id}
      title={visible(job.name)}
      onClick={open}
      onFocus={() => activate(job.id)}
    >
      {visible(job.name)}
    </a>
  );
}

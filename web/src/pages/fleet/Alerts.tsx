import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Fragment, useState } from 'react';
import { alertsQuery } from '../../api/queries';
import type { Alert } from '../../api/types';
import { Ago } from '../../ui/Ago';
import { CodeText } from '../../ui/CodeText';
import { CommandLine } from '../../ui/CommandLine';
import { count } from '../../ui/format';
import { Icon } from '../../ui/Icon';
import { Panel } from '../../ui/Panel';
import { Loaded } from '../../ui/States';
import { visible } from '../../ui/visible';
import classes from './Alerts.module.css';
import { type AlertGroup, advice, grouped, message, severity, title, withName } from './advice';
import { namesQuery } from './queries';

const FIRST = 5;
/// Factories of one kind of trouble that are named.
const NAMED = 8;
/// As many as one call tells.
const NAMED_JOBS = 100;
const SEVERITY_WORDS = { bad: 'serious', warn: 'warning', note: 'note' } as const;

/// What somebody should look at, worst first, with what to do about it.
export function Alerts() {
  const alerts = useQuery(alertsQuery());
  const [all, setAll] = useState(false);
  const known = alerts.data?.alerts.length ?? 0;
  const names = useNames(alerts.data?.alerts);
  return (
    <Panel
      title="Alerts"
      aside={
        <span className={classes.count}>{alerts.data ? (known === 0 ? 'none' : count(known)) : ''}</span>
      }
    >
      <div id="alerts" className={classes.place}>
        <Loaded query={alerts} what="alerts">
          {(data) => {
            const groups = grouped(data.alerts);
            if (groups.length === 0) {
              return (
                <p className={classes.fine}>
                  <Icon name="check" /> Nothing needs you.
                </p>
              );
            }
            return (
              <>
                <ul className={classes.list}>
                  {(all ? groups : groups.slice(0, FIRST)).map((group) => (
                    <AlertItem key={group.key} group={group} names={names} />
                  ))}
                </ul>
                {groups.length > FIRST && (
                  <Button size="xs" variant="subtle" onClick={() => setAll(!all)} aria-expanded={all}>
                    {all ? `Only the first ${FIRST}` : `Show ${count(groups.length - FIRST)} more`}
                  </Button>
                )}
              </>
            );
          }}
        </Loaded>
      </div>
    </Panel>
  );
}

/// People know jobs by their names; alerts tell their ids.
function useNames(alerts: Alert[] | undefined): Map<string, string> {
  const ids = [...new Set((alerts ?? []).flatMap((alert) => alert.jobId ?? []))].sort().slice(0, NAMED_JOBS);
  const { data } = useQuery(namesQuery(ids));
  return new Map(data);
}

function AlertItem({ group, names }: { group: AlertGroup; names: Map<string, string> }) {
  const { first, alerts } = group;
  const name = names.get(first.jobId ?? '');
  const how = severity(first);
  const { text, command } = advice(first);
  const several = alerts.length > 1;
  return (
    <li className={classes.alert} data-severity={how}>
      <div className={classes.head}>
        <Icon name={how === 'note' ? 'flag' : 'warn'} size={14} />
        <strong>{title(first)}</strong>
        <span className={classes.how}>{SEVERITY_WORDS[how]}</span>
        {first.since && (
          <span className={classes.since}>
            <Ago at={first.since} />
          </span>
        )}
      </div>
      <p className={classes.message}>
        <CodeText text={visible(withName(message(group), first.jobId, name))} />
      </p>
      <p className={classes.advice}>
        {text}{' '}
        {alerts.slice(0, NAMED).map((alert) => (
          <Fragment key={alert.factoryId ?? ''}>
            <Subject alert={alert} />{' '}
          </Fragment>
        ))}
        {alerts.length > NAMED && `and ${count(alerts.length - NAMED)} more`}
      </p>
      {command && <CommandLine command={several ? 'giga factory list' : command} />}
    </li>
  );
}

function Subject({ alert }: { alert: Alert }) {
  if (alert.jobId) {
    return (
      <Link className={classes.link} to="/jobs/$id" params={{ id: alert.jobId }} search={{ tab: 'explain' }}>
        Open the job
      </Link>
    );
  }
  if (alert.factoryId) {
    return (
      <Link className={classes.link} to="/" hash={`factory-${alert.factoryId}`}>
        {alert.factoryId}
      </Link>
    );
  }
  if (alert.productId) {
    return (
      <Link className={classes.link} to="/budgets/$product" params={{ product: alert.productId }}>
        Budget of {alert.productId}
      </Link>
    );
  }
  if (alert.code === 'dead_letters') {
    return (
      <Link className={classes.link} to="/jobs" search={{ stage: 'dead_letter' }}>
        Show dead letters
      </Link>
    );
  }
  return null;
}

import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Fragment, useState } from 'react';
import { alertsQuery } from '../../api/queries';
import type { Alert } from '../../api/types';
import { labelOf, SEVERITY, type Stage, toneOf } from '../../api/vocabulary';
import { Ago } from '../../ui/Ago';
import { CodeText } from '../../ui/CodeText';
import { CommandLine } from '../../ui/CommandLine';
import { count, sentence } from '../../ui/format';
import { Icon } from '../../ui/Icon';
import { Panel } from '../../ui/Panel';
import { Loaded } from '../../ui/States';
import { visible } from '../../ui/visible';
import classes from './Alerts.module.css';
import { namesQuery } from './queries';

const FIRST = 5;
/// Factories of one group that are named.
const NAMED = 8;
/// As many as one call takes.
const NAMED_JOBS = 100;

/// Everything about an alert comes from the coordinator: its severity, title and remedy, and the order, worst first.
export function Alerts() {
  const alerts = useQuery(alertsQuery());
  const [all, setAll] = useState(false);
  const known = alerts.data?.alerts.length ?? 0;
  const names = useNames(alerts.data?.alerts);
  return (
    <Panel title="Alerts" aside={<span className={classes.count}>{known > 0 && count(known)}</span>}>
      <div id="alerts" className={classes.place}>
        <Loaded query={alerts} what="alerts">
          {(data) => {
            const groups = grouped(data.alerts);
            if (groups.length === 0) {
              return (
                <p className={classes.fine}>
                  <Icon name="check" /> No alerts
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
                    {all ? 'Show fewer' : `Show ${count(groups.length - FIRST)} more`}
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

/// People know jobs by their names; alerts carry their ids.
function useNames(alerts: Alert[] | undefined): Map<string, string> {
  const ids = [...new Set((alerts ?? []).flatMap((alert) => alert.jobId ?? []))].sort().slice(0, NAMED_JOBS);
  const { data } = useQuery(namesQuery(ids));
  return new Map(data);
}

/// Alerts that say the same of several factories are shown as one.
export interface AlertGroup {
  key: string;
  first: Alert;
  alerts: Alert[];
}

export function grouped(alerts: readonly Alert[]): AlertGroup[] {
  const groups = new Map<string, AlertGroup>();
  for (const alert of alerts) {
    // With another remedy it is another group: offline is not the same as never connected.
    const key = alert.factoryId
      ? `${alert.code} ${alert.remedy?.message ?? ''}`
      : `${alert.code} ${alert.productId ?? ''} ${alert.jobId ?? ''} ${alert.code === 'pool_start_failed' ? alert.message : ''}`;
    const group = groups.get(key);
    if (group) group.alerts.push(alert);
    else groups.set(key, { key, first: alert, alerts: [alert] });
  }
  return [...groups.values()];
}

export function groupMessage({ first, alerts }: AlertGroup): string {
  return alerts.length === 1 ? first.message : `${count(alerts.length)} factories`;
}

/// The message with the name of its job in place of the id.
export function withName(text: string, id: string | null | undefined, name: string | undefined): string {
  return id && name ? text.replaceAll(id, () => `“${name}”`) : text;
}

function AlertItem({ group, names }: { group: AlertGroup; names: Map<string, string> }) {
  const { first, alerts } = group;
  const { remedy, severity } = first;
  const message = withName(groupMessage(group), first.jobId, names.get(first.jobId ?? ''));
  const command = alerts.length > 1 ? 'giga factory list' : remedy?.command;
  return (
    <li className={classes.alert} data-tone={toneOf(SEVERITY, severity)}>
      <div className={classes.head}>
        <Icon name={severity === 'info' ? 'flag' : 'warn'} size={14} />
        <strong>{first.title}</strong>
        <span className={classes.severity}>{labelOf(SEVERITY, severity)}</span>
        {first.since && (
          <span className={classes.since}>
            <Ago at={first.since} />
          </span>
        )}
      </div>
      <p className={classes.message}>
        <CodeText text={visible(sentence(message))} />
      </p>
      <p className={classes.remedy}>
        {remedy && <CodeText text={`${sentence(remedy.message)}. `} />}
        {alerts.slice(0, NAMED).map((alert) => (
          <Fragment key={alert.factoryId ?? ''}>
            <Subject alert={alert} />{' '}
          </Fragment>
        ))}
        {alerts.length > NAMED && `and ${count(alerts.length - NAMED)} more`}
      </p>
      {command && <CommandLine command={command} />}
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
      <Link className={classes.link} to="/jobs" search={{ stage: 'dead_letter' satisfies Stage }}>
        Show dead letters
      </Link>
    );
  }
  return null;
}

// Pausing and resuming one topic, or all of them. Both ask first.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { answer, api, inProduct } from '../../api/client';
import { keys, whoamiQuery } from '../../api/queries';
import type { Topic, TopicList } from '../../api/types';
import { useActorName } from '../../session/useSession';
import { Ago } from '../../ui/Ago';
import { ActionButton } from '../../ui/Confirm';
import { shellWord } from '../../ui/format';
import { Icon } from '../../ui/Icon';
import { Panel } from '../../ui/Panel';
import classes from './Topics.module.css';

/// `topic pause mail --product demo`, and so on.
export function topicCommand(verb: string, topic: Pick<Topic, 'name' | 'productId'>, rest = ''): string {
  return `giga topic ${verb} ${shellWord(topic.name)}${rest} --product ${shellWord(topic.productId)}`;
}

const PAUSE = { verb: 'pause', label: 'Pause', icon: 'pause', done: 'paused' } as const;
const RESUME = { verb: 'resume', label: 'Resume', icon: 'play', done: 'resumed' } as const;

export function TopicSwitch({ topic }: { topic: Pick<Topic, 'name' | 'productId' | 'paused'> }) {
  const client = useQueryClient();
  const { name, productId } = topic;
  const params = { params: { path: { name }, header: inProduct(productId) } };
  const { verb, label, icon, done } = topic.paused ? RESUME : PAUSE;
  const call = async () => {
    if (topic.paused) await answer(api.POST('/api/fleet/topics/{name}/resume', params));
    else await answer(api.POST('/api/fleet/topics/{name}/pause', params));
    await client.invalidateQueries({ queryKey: keys.topics });
  };
  const text = topic.paused
    ? 'Ready jobs go to its workers at once.'
    : 'Workers get no more of its jobs until it is resumed. Running jobs continue, and jobs can still be added.';
  return (
    <ActionButton
      key={verb}
      label={label}
      aria-label={`${label} ${name}`}
      role="operator"
      leftSection={<Icon name={icon} size={12} />}
      done={`${name} was ${done}`}
      command={topicCommand(verb, topic)}
      run={call}
      confirm={{ title: `${label} ${name} of ${productId}?`, text, yes: label }}
    />
  );
}

/// Pauses or resumes every topic of every product.
export function AllTopics({ paused }: Pick<TopicList, 'paused'>) {
  const client = useQueryClient();
  const { data: me } = useQuery(whoamiQuery());
  const { verb, label, icon, done } = paused ? RESUME : PAUSE;
  const call = async () => {
    if (paused) await answer(api.POST('/api/fleet/topic-gate/open', {}));
    else await answer(api.POST('/api/fleet/topic-gate/close', {}));
    await client.invalidateQueries({ queryKey: keys.topics });
  };
  const text = paused
    ? 'Topics that were paused individually stay paused.'
    : 'Workers of every product get no jobs until the topics are resumed. Running jobs continue.';
  const everyProduct = me?.everyProduct === true;
  const actorName = useActorName();
  return (
    <Panel title="All topics">
      <div className={classes.gate} data-closed={paused ? true : undefined}>
        <span className={classes.gateState}>
          <Icon name={paused ? 'pause' : 'check'} size={14} />
          {paused ? (
            <span>
              <b>Paused</b> by {actorName(paused.by)}, <Ago at={paused.since} />. Workers get no jobs.
            </span>
          ) : (
            <span>
              <b>Running</b>, except topics paused individually
            </span>
          )}
        </span>
        {!everyProduct && me ? (
          <span className={classes.dim}>Requires a token for all products.</span>
        ) : (
          <ActionButton
            key={verb}
            label={`${label} all`}
            role="operator"
            leftSection={<Icon name={icon} size={12} />}
            done={`All topics were ${done}`}
            command={`giga topic ${verb} --all`}
            run={call}
            confirm={{ title: `${label} all topics?`, text, yes: `${label} all`, danger: !paused }}
          />
        )}
      </div>
    </Panel>
  );
}

/// Whether workers get its jobs, and if not, why.
export function TopicStatus({ topic, allPaused }: { topic: Topic; allPaused: boolean }) {
  const actorName = useActorName();
  if (topic.paused) {
    return (
      <span className={classes.closed}>
        paused <Ago at={topic.paused.since} /> by {actorName(topic.paused.by)}
      </span>
    );
  }
  if (allPaused) return <span className={classes.closed}>paused with all topics</span>;
  if ((topic.byState.ready ?? 0) > 0 && topic.workers === 0) {
    return <span className={classes.closed}>no workers connected</span>;
  }
  return <span className={classes.open}>running</span>;
}

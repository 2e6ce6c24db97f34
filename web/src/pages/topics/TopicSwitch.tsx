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

export function TopicSwitch({ topic }: { topic: Pick<Topic, 'name' | 'productId' | 'paused'> }) {
  const client = useQueryClient();
  const { name, productId } = topic;
  const params = { params: { path: { name }, header: inProduct(productId) } };
  const after = () => client.invalidateQueries({ queryKey: keys.topics });
  if (topic.paused) {
    return (
      <ActionButton
        key="resume"
        label="Resume"
        aria-label={`Resume ${name}`}
        role="operator"
        leftSection={<Icon name="play" size={12} />}
        done={`${name} was resumed`}
        command={topicCommand('resume', topic)}
        run={() => answer(api.POST('/api/fleet/topics/{name}/resume', params)).then(after)}
        confirm={{
          title: `Resume ${name} of ${productId}?`,
          text: 'Ready jobs go to its workers at once.',
          yes: 'Resume',
        }}
      />
    );
  }
  return (
    <ActionButton
      key="pause"
      label="Pause"
      aria-label={`Pause ${name}`}
      role="operator"
      leftSection={<Icon name="pause" size={12} />}
      done={`${name} was paused`}
      command={topicCommand('pause', topic)}
      run={() => answer(api.POST('/api/fleet/topics/{name}/pause', params)).then(after)}
      confirm={{
        title: `Pause ${name} of ${productId}?`,
        text: 'Workers get no more of its jobs until it is resumed. Running jobs continue, and jobs can still be added.',
        yes: 'Pause',
      }}
    />
  );
}

/// Pauses or resumes every topic of every product.
export function AllTopics({ paused }: Pick<TopicList, 'paused'>) {
  const client = useQueryClient();
  const { data: me } = useQuery(whoamiQuery());
  const after = () => client.invalidateQueries({ queryKey: keys.topics });
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
        ) : paused ? (
          <ActionButton
            key="resume"
            label="Resume all"
            role="operator"
            leftSection={<Icon name="play" size={12} />}
            done="All topics were resumed"
            command="giga topic resume --all"
            run={() => answer(api.POST('/api/fleet/topic-gate/open', {})).then(after)}
            confirm={{
              title: 'Resume all topics?',
              text: 'Topics that were paused individually stay paused.',
              yes: 'Resume all',
            }}
          />
        ) : (
          <ActionButton
            key="pause"
            label="Pause all"
            role="operator"
            leftSection={<Icon name="pause" size={12} />}
            done="All topics were paused"
            command="giga topic pause --all"
            run={() => answer(api.POST('/api/fleet/topic-gate/close', {})).then(after)}
            confirm={{
              title: 'Pause all topics?',
              text: 'Workers of every product get no jobs until the topics are resumed. Running jobs continue.',
              yes: 'Pause all',
              danger: true,
            }}
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

// Gates: of one topic, and the one in front of all. Closing asks first.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { answer, api, inProduct } from '../../api/client';
import { keys, whoamiQuery } from '../../api/queries';
import type { Topic, TopicList } from '../../api/types';
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
        done={`${name} is handed out again`}
        command={topicCommand('resume', topic)}
        run={() => answer(api.POST('/api/fleet/topics/{name}/resume', params)).then(after)}
        confirm={{
          title: `Resume ${name} of ${productId}?`,
          text: 'What is ready is handed out to its workers at once.',
          yes: 'Resume it',
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
      done={`${name} is paused`}
      command={topicCommand('pause', topic)}
      run={() => answer(api.POST('/api/fleet/topics/{name}/pause', params)).then(after)}
      confirm={{
        title: `Pause ${name} of ${productId}?`,
        text: 'Nothing more of it is handed out until it is resumed. What runs goes on, and jobs can still be added.',
        yes: 'Pause it',
      }}
    />
  );
}

/// The gate in front of every topic of every product.
export function GateOfAll({ paused }: Pick<TopicList, 'paused'>) {
  const client = useQueryClient();
  const { data: me } = useQuery(whoamiQuery());
  const after = () => client.invalidateQueries({ queryKey: keys.topics });
  const everyProduct = me?.everyProduct === true;
  return (
    <Panel title="Gate of all topics">
      <div className={classes.gate} data-closed={paused ? true : undefined}>
        <span className={classes.gateState}>
          <Icon name={paused ? 'pause' : 'check'} size={14} />
          {paused ? (
            <span>
              <b>Closed</b> by {paused.by}, <Ago at={paused.since} />. Nothing of any topic is handed out.
            </span>
          ) : (
            <span>
              <b>Open.</b> Topics are handed out, those with a closed gate of their own apart.
            </span>
          )}
        </span>
        {!everyProduct && me ? (
          <span className={classes.dim}>Moving it needs a token for every product.</span>
        ) : paused ? (
          <ActionButton
            key="open"
            label="Open"
            role="operator"
            leftSection={<Icon name="play" size={12} />}
            done="The gate is open"
            command="giga topic resume --all"
            run={() => answer(api.POST('/api/fleet/topic-gate/open', {})).then(after)}
            confirm={{
              title: 'Open the gate of all topics?',
              text: 'Topics that were paused by their name stay paused.',
              yes: 'Open it',
            }}
          />
        ) : (
          <ActionButton
            key="close"
            label="Close"
            role="operator"
            leftSection={<Icon name="pause" size={12} />}
            done="The gate is closed"
            command="giga topic pause --all"
            run={() => answer(api.POST('/api/fleet/topic-gate/close', {})).then(after)}
            confirm={{
              title: 'Close the gate of all topics?',
              text: 'Nothing of any topic of any product is handed out until it is opened again. What runs goes on.',
              yes: 'Close it for everybody',
              danger: true,
            }}
          />
        )}
      </div>
    </Panel>
  );
}

/// Whether the topic is handed out, and if not, why.
export function TopicState({ topic, gateClosed }: { topic: Topic; gateClosed: boolean }) {
  if (topic.paused) {
    return (
      <span className={classes.closed} title={`by ${topic.paused.by}`}>
        paused <Ago at={topic.paused.since} /> by {topic.paused.by}
      </span>
    );
  }
  if (gateClosed) return <span className={classes.closed}>behind the closed gate</span>;
  if ((topic.byState.ready ?? 0) > 0 && topic.workers === 0) {
    return <span className={classes.closed}>no worker connected here</span>;
  }
  return <span className={classes.open}>open</span>;
}

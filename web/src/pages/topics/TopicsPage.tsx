import { Button, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { topicsQuery } from '../../api/queries';
import type { Topic, TopicList } from '../../api/types';
import { useRowKeys } from '../../app/keys';
import { TOPIC_STATES } from '../../app/search';
import { CommandLine } from '../../ui/CommandLine';
import { FilterInput } from '../../ui/FilterInput';
import { holdsWords, urgentFirst } from '../../ui/filter';
import { count, plural } from '../../ui/format';
import { PageHead, Panel, ScrollBox } from '../../ui/Panel';
import { Empty, Loaded } from '../../ui/States';
import { GateOfAll, TopicState, TopicSwitch } from './TopicGate';
import classes from './Topics.module.css';

export function TopicsPage() {
  useRowKeys();
  const topics = useQuery(topicsQuery());
  return (
    <Stack gap="md">
      <PageHead title="Topics" command="giga topic list" />
      <Loaded query={topics} what="topics">
        {(data) => (
          <>
            <GateOfAll paused={data.paused} />
            <Panel title="Topics">{data.topics.length === 0 ? <NoTopics /> : <Table list={data} />}</Panel>
          </>
        )}
      </Loaded>
    </Stack>
  );
}

function NoTopics() {
  return (
    <Empty title="No topic has a job yet">
      <p>Topics are plain queues for handlers in your own processes. A topic begins with its first job:</p>
      <CommandLine command={`giga topic enqueue mail '{"to": "ana"}'`} />
    </Empty>
  );
}

/// Paused ones first.
function Table({ list }: { list: TopicList }) {
  const [filter, setFilter] = useState('');
  const sorted = [...list.topics].sort((a, b) => key(a).localeCompare(key(b)));
  const shown = urgentFirst(sorted, (topic) => Boolean(topic.paused)).filter((topic) =>
    holdsWords(filter, [key(topic)]),
  );
  return (
    <>
      <FilterInput
        label="Filter topics by product and name"
        placeholder="Product, topic"
        value={filter}
        onType={setFilter}
        className={classes.filter}
      />
      {shown.length === 0 ? (
        <Empty title="No topic is called like that">
          <Button size="xs" variant="default" onClick={() => setFilter('')}>
            Show all {plural(sorted.length, 'topic')}
          </Button>
        </Empty>
      ) : (
        <Rows topics={shown} gateClosed={Boolean(list.paused)} />
      )}
    </>
  );
}

function Rows({ topics, gateClosed }: { topics: Topic[]; gateClosed: boolean }) {
  return (
    <ScrollBox className={classes.box} label="Topics and how many jobs they have">
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">topic</th>
            {TOPIC_STATES.map((state) => (
              <th scope="col" key={state} className={classes.number}>
                {state}
              </th>
            ))}
            <th scope="col" className={classes.number}>
              workers
            </th>
            <th scope="col" className={classes.number}>
              in flight
            </th>
            <th scope="col">state</th>
            <th scope="col">
              <span className={classes.hidden}>actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {topics.map((topic) => (
            <Row key={key(topic)} topic={topic} gateClosed={gateClosed} />
          ))}
        </tbody>
      </table>
    </ScrollBox>
  );
}

function key(topic: Topic): string {
  return `${topic.productId}/${topic.name}`;
}

function Row({ topic, gateClosed }: { topic: Topic; gateClosed: boolean }) {
  const params = { product: topic.productId, name: topic.name };
  return (
    <tr>
      <th scope="row" className={classes.name}>
        <span className={classes.dim}>{topic.productId} / </span>
        <Link to="/topics/$product/$name" params={params} data-row>
          {topic.name}
        </Link>
      </th>
      {TOPIC_STATES.map((state) => {
        const n = topic.byState[state] ?? 0;
        return (
          <td
            key={state}
            className={classes.number}
            data-tone={n > 0 && state === 'dead' ? 'bad' : undefined}
          >
            {n === 0 ? (
              <span className={classes.dim}>0</span>
            ) : (
              <Link
                to="/topics/$product/$name"
                params={params}
                search={{ state }}
                aria-label={`${n} ${state} of ${topic.name}`}
              >
                {count(n)}
              </Link>
            )}
          </td>
        );
      })}
      <td className={classes.number}>{count(topic.workers)}</td>
      <td className={classes.number}>{count(topic.inFlight)}</td>
      <td className={classes.state}>
        <TopicState topic={topic} gateClosed={gateClosed} />
      </td>
      <td className={classes.actions}>
        <TopicSwitch topic={topic} />
      </td>
    </tr>
  );
}

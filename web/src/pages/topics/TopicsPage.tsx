import { Stack, VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { topicsQuery } from '../../api/queries';
import type { Topic, TopicList } from '../../api/types';
import { TOPIC_JOB_STATE, wordsOf } from '../../api/vocabulary';
import { useRowKeys } from '../../app/keys';
import { CommandLine } from '../../ui/CommandLine';
import { Filtered } from '../../ui/FilterInput';
import { urgentFirst } from '../../ui/filter';
import { count } from '../../ui/format';
import { PageHead, Panel, ScrollBox } from '../../ui/Panel';
import { Empty, Loaded } from '../../ui/States';
import { AllTopics, TopicStatus, TopicSwitch } from './TopicSwitch';
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
            <AllTopics paused={data.paused} />
            <Panel title="Topics">{data.topics.length === 0 ? <NoTopics /> : <Table list={data} />}</Panel>
          </>
        )}
      </Loaded>
    </Stack>
  );
}

function NoTopics() {
  return (
    <Empty title="No topics yet">
      <p>Topics are plain queues for workers in your own processes. A topic starts with its first job:</p>
      <CommandLine command={`giga topic enqueue mail '{"to": "ana"}'`} />
    </Empty>
  );
}

/// Paused ones first.
function Table({ list }: { list: TopicList }) {
  const sorted = [...list.topics].sort((a, b) => key(a).localeCompare(key(b)));
  return (
    <Filtered
      all={urgentFirst(sorted, (topic) => Boolean(topic.paused))}
      one="topic"
      text={key}
      label="Filter topics by product and name"
      placeholder="Product, topic"
      className={classes.filter}
    >
      {(shown) => <Rows topics={shown} allPaused={Boolean(list.paused)} />}
    </Filtered>
  );
}

function Rows({ topics, allPaused }: { topics: Topic[]; allPaused: boolean }) {
  return (
    <ScrollBox className={classes.box} label="Topics and their jobs">
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">topic</th>
            {wordsOf(TOPIC_JOB_STATE).map((state) => (
              <th scope="col" key={state} className={classes.number}>
                {TOPIC_JOB_STATE[state].label}
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
              <VisuallyHidden>actions</VisuallyHidden>
            </th>
          </tr>
        </thead>
        <tbody>
          {topics.map((topic) => (
            <Row key={key(topic)} topic={topic} allPaused={allPaused} />
          ))}
        </tbody>
      </table>
    </ScrollBox>
  );
}

function key(topic: Topic): string {
  return `${topic.productId}/${topic.name}`;
}

function Row({ topic, allPaused }: { topic: Topic; allPaused: boolean }) {
  const params = { product: topic.productId, name: topic.name };
  return (
    <tr>
      <th scope="row" className={classes.name}>
        <span className={classes.dim}>{topic.productId} / </span>
        <Link to="/topics/$product/$name" params={params} data-row>
          {topic.name}
        </Link>
      </th>
      {wordsOf(TOPIC_JOB_STATE).map((state) => {
        const n = topic.byState[state] ?? 0;
        return (
          <td
            key={state}
            className={classes.number}
            data-tone={n > 0 ? TOPIC_JOB_STATE[state].tone : undefined}
          >
            {n === 0 ? (
              <span className={classes.dim}>0</span>
            ) : (
              <Link
                to="/topics/$product/$name"
                params={params}
                search={{ state }}
                aria-label={`${n} ${TOPIC_JOB_STATE[state].label} of ${topic.name}`}
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
        <TopicStatus topic={topic} allPaused={allPaused} />
      </td>
      <td className={classes.actions}>
        <TopicSwitch topic={topic} />
      </td>
    </tr>
  );
}

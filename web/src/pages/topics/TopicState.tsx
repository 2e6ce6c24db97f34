import type { Topic } from '../../api/types';
import { Ago } from '../../ui/Ago';
import classes from './Topics.module.css';

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

import { oneOf } from '../../app/search';

export const TOPIC_STATES = ['ready', 'scheduled', 'running', 'dead', 'done'] as const;
export type TopicState = (typeof TOPIC_STATES)[number];

export interface TopicSearch {
  state?: TopicState;
}

export function topicSearch(search: Record<string, unknown>): TopicSearch {
  return { state: oneOf(search.state, TOPIC_STATES) };
}

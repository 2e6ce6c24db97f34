// Topics, subscriptions and their messages, as Azure Service Bus has them: correlation rules, peek-lock with an expiry,
// a count of deliveries, dead letters, a duplicate window. Knows nothing of AMQP or HTTP.

import { randomBytes } from 'node:crypto';

/// Names of entities mean the same in capitals.
const key = (name) => name.toLowerCase();

export class Problem extends Error {
  constructor(condition, status, message) {
    super(message);
    this.condition = condition;
    this.status = status;
  }
}

const missing = (what) =>
  new Problem('amqp:not-found', 404, `The messaging entity '${what}' could not be found.`);

export class Subscription {
  constructor(topic, name, set) {
    this.topic = topic;
    this.name = name;
    this.lock = set.lock ?? 60_000;
    this.ttl = set.ttl ?? Infinity;
    this.deliveries = set.deliveries ?? 10;
    this.forward = set.forward ?? null;
    this.rules = new Map(set.rule ? [[set.rule.name, set.rule.properties]] : [['$Default', null]]);
    this.messages = [];
    this.dead = [];
    this.receivers = new Set();
  }

  matches(properties) {
    // A rule without properties is the one that takes everything.
    const fits = (wanted) => Object.entries(wanted).every(([name, value]) => properties?.[name] === value);
    return [...this.rules.values()].some((wanted) => wanted === null || fits(wanted));
  }

  expireOld(now) {
    this.messages = this.messages.filter((one) => one.lock || now - one.enqueued < this.ttl);
  }

  /// The oldest that nobody holds.
  next(now) {
    this.expireOld(now);
    return this.messages.find((one) => !one.lock) ?? null;
  }

  hold(message, receiver, now) {
    message.lock = { token: randomBytes(16), until: now + this.lock, receiver };
    return message.lock.token;
  }

  /// The message that this lock is on, if it still is.
  held(token) {
    return this.messages.find((one) => one.lock?.token.equals(token)) ?? null;
  }

  complete(message) {
    this.messages = this.messages.filter((one) => one !== message);
  }

  /// Back to its place in the row. One that was delivered too often goes to the dead letters.
  release(message, counts) {
    message.lock = null;
    message.deliveries += counts ? 1 : 0;
    if (message.deliveries >= this.deliveries) this.bury(message, 'MaxDeliveryCountExceeded');
    this.topic.space.changed(this);
  }

  bury(message, reason) {
    this.complete(message);
    message.lock = null;
    const dead = { ...message, properties: { ...message.properties, DeadLetterReason: reason } };
    if (this.forward) this.topic.space.topic(this.forward).publish({ ...dead, id: undefined }, Date.now());
    else this.dead.push(dead);
  }

  /// Locks whose time is over.
  tick(now) {
    for (const one of [...this.messages]) {
      if (one.lock && one.lock.until <= now) this.release(one, true);
    }
  }
}

export class Topic {
  constructor(space, name, set) {
    this.space = space;
    this.name = name;
    this.window = set.duplicates ?? 0;
    this.ttl = set.ttl ?? Infinity;
    this.largest = set.largest ?? 256 * 1024;
    this.seen = new Map();
    this.subscriptions = new Map();
    this.received = 0;
  }

  publish(message, now) {
    if (message.id !== undefined && this.window > 0) {
      const before = this.seen.get(message.id);
      if (before !== undefined && now - before < this.window) return;
      this.seen.set(message.id, now);
    }
    this.received += 1;
    for (const one of this.subscriptions.values()) {
      if (!one.matches(message.properties)) continue;
      const sequence = this.space.sequence++;
      one.messages.push({ ...message, sequence, enqueued: now, deliveries: 0, lock: null });
      this.space.changed(one);
    }
  }
}

export class Space {
  constructor() {
    this.sequence = 1;
    this.topics = new Map();
    /// Called when a subscription may have something for its receivers.
    this.changed = () => {};
    /// Called when an entity is gone.
    this.removed = () => {};
  }

  topic(name) {
    const found = this.topics.get(key(name));
    if (!found) throw missing(name);
    return found;
  }

  subscription(topic, name) {
    const found = this.topic(topic).subscriptions.get(key(name));
    if (!found) throw missing(`${topic}/Subscriptions/${name}`);
    return found;
  }

  createTopic(name, set) {
    if (this.topics.has(key(name))) throw new Problem('exists', 409, `The topic ${name} exists.`);
    this.topics.set(key(name), new Topic(this, name, set));
  }

  createSubscription(topic, name, set) {
    const owner = this.topic(topic);
    if (set.forward) this.topic(set.forward);
    if (owner.subscriptions.has(key(name))) {
      throw new Problem('exists', 409, `The subscription ${name} exists.`);
    }
    owner.subscriptions.set(key(name), new Subscription(owner, name, set));
  }

  deleteTopic(name) {
    const topic = this.topic(name);
    this.topics.delete(key(name));
    this.removed(topic.name);
    for (const one of topic.subscriptions.values()) this.removed(`${topic.name}/Subscriptions/${one.name}`);
  }

  deleteSubscription(topic, name) {
    const found = this.subscription(topic, name);
    this.topic(topic).subscriptions.delete(key(name));
    this.removed(`${found.topic.name}/Subscriptions/${found.name}`);
  }

  tick(now) {
    for (const topic of this.topics.values()) {
      for (const one of topic.subscriptions.values()) one.tick(now);
    }
  }

  state() {
    const of = (one) => ({
      messages: one.messages.length,
      locked: one.messages.filter((message) => message.lock).length,
      dead: one.dead.length,
      rules: Object.fromEntries(one.rules),
      lock: one.lock,
      deliveries: one.deliveries,
      receivers: one.receivers.size,
    });
    return Object.fromEntries(
      [...this.topics.values()].map((topic) => [
        topic.name,
        {
          window: topic.window,
          received: topic.received,
          subscriptions: Object.fromEntries([...topic.subscriptions.values()].map((one) => [one.name, of(one)])),
        },
      ]),
    );
  }
}

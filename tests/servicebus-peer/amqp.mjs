// The AMQP side: links to topics and subscriptions, `$cbs` and `$management`.
//
// Address of a topic: `NAME`; of a subscription: `NAME/Subscriptions/NAME`, with `/$management` and `/$DeadLetterQueue` below.

import { Problem } from './entities.mjs';
import { pathOf } from './tokens.mjs';

const LOCK_LOST = 'com.microsoft:message-lock-lost';
const SIZE = 'amqp:link:message-size-exceeded';

const bare = (address) => (address ?? '').replace(/^[a-z]+:\/\/[^/]*\//i, '').replace(/^\/+/, '');

/// .NET writes the first three groups of a GUID backwards; a lock's token is that reading of a delivery's tag.
function mixed(bytes) {
  const order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
  return Buffer.from(order.map((at) => bytes[at]));
}

export class Amqp {
  constructor(rhea, space, tokens, faults) {
    this.rhea = rhea;
    this.space = space;
    this.tokens = tokens;
    this.faults = faults;
    this.connections = new Set();
    /// Every token that was put, for tests that count them.
    this.put = [];
    this.container = rhea.create_container();
    this.container.sasl_server_mechanisms.enable_anonymous();
    const on = (event, act) => this.container.on(event, (context) => act.call(this, context));
    on('connection_open', ({ connection }) => this.connections.add(this.known(connection)));
    on('sender_open', this.opens);
    on('receiver_open', this.opens);
    on('sendable', ({ sender }) => this.pump(sender));
    on('message', this.message);
    for (const outcome of ['accepted', 'released', 'modified', 'rejected']) {
      on(outcome, (context) => this.outcome(outcome, context));
    }
    for (const event of ['sender_close', 'receiver_close', 'session_close']) on(event, this.closes);
    for (const event of ['connection_close', 'disconnected']) {
      on(event, ({ connection }) => this.gone(connection));
    }
    for (const event of ['error', 'sender_error', 'receiver_error', 'session_error', 'connection_error', 'protocol_error']) {
      this.container.on(event, () => {});
    }
    space.changed = (subscription) => subscription.receivers.forEach((link) => this.pump(link));
    space.removed = (address) => this.detach(address, 'amqp:not-found', `The messaging entity '${address}' was deleted.`);
  }

  accept(socket) {
    const senders = { autosettle: false, treat_modified_as_released: false };
    const receivers = { autoaccept: false, autosettle: true, credit_window: 200 };
    const options = { max_frame_size: 65_536, idle_time_out: 240_000, sender_options: senders, receiver_options: receivers };
    const connection = this.container.create_connection(options);
    // However it ends: a connection that breaks is not always said.
    socket.on('close', () => this.gone(connection));
    connection.accept(socket);
  }

  known(connection) {
    connection.peer ??= { tokens: new Map(), links: new Set(), replies: new Map() };
    return connection;
  }

  /// The claims that this connection has for an address, or a refusal.
  authorise(connection, address, claim) {
    const path = pathOf(`/${address}`);
    for (const [audience, found] of this.known(connection).peer.tokens) {
      if (!`${path}/`.startsWith(audience === '' ? '' : `${audience}/`)) continue;
      if (found.until > Date.now() && found.claims.includes(claim)) return;
    }
    throw new Problem('amqp:unauthorized-access', 401, `Unauthorized access. '${claim}' claim(s) are required to perform this operation on '${address}'.`);
  }

  opens({ sender, receiver, connection }) {
    const link = sender ?? receiver;
    const address = bare(sender ? link.source?.address : link.target?.address);
    link.address = address;
    this.known(connection).peer.links.add(link);
    try {
      this.open(link, address, sender, connection);
      link.set_source({ address: link.source?.address });
      link.set_target({ address: link.target?.address });
      if (sender) {
        link.local.attach.snd_settle_mode = link.snd_settle_mode;
        link.local.attach.rcv_settle_mode = link.rcv_settle_mode;
      }
    } catch (problem) {
      // As the service does it: attached without a terminus, and detached with the reason.
      link.close({ condition: problem.condition ?? 'amqp:internal-error', description: problem.message, info: {} });
    }
  }

  open(link, address, sender, connection) {
    if (address === '$cbs' || address.endsWith('/$management')) {
      if (sender) connection.peer.replies.set(link.target?.address, link);
      if (address !== '$cbs') this.authorise(connection, address, 'Listen');
      return;
    }
    this.faults.attach(address);
    const [topic, subscriptions, name, queue] = address.split('/');
    this.authorise(connection, address, sender ? 'Listen' : 'Send');
    if (!sender) {
      link.topic = this.space.topic(topic);
      link.local.attach.max_message_size = link.topic.largest;
      return;
    }
    if (subscriptions?.toLowerCase() !== 'subscriptions') throw new Problem('amqp:not-found', 404, `'${address}' cannot be read from`);
    link.subscription = this.space.subscription(topic, name);
    link.deadLetters = queue?.toLowerCase() === '$deadletterqueue';
    link.deletes = link.snd_settle_mode === 1;
    link.subscription.receivers.add(link);
  }

  /// As much as there is credit for.
  pump(link) {
    const { subscription } = link;
    if (!subscription || !link.is_open()) return;
    const outgoing = link.session.outgoing;
    const room = () => link.credit - (outgoing.next_delivery_id - outgoing.next_pending_delivery);
    const now = Date.now();
    while (room() > 0) {
      const message = link.deadLetters ? subscription.dead.shift() : subscription.next(now);
      if (!message) return;
      if (link.deadLetters || link.deletes) {
        subscription.complete(message);
        link.send(this.outgoing(message), undefined);
      } else {
        const token = subscription.hold(message, link, now);
        link.send(this.outgoing(message), token);
      }
    }
  }

  outgoing(message) {
    const { wrap_timestamp, wrap_long } = this.rhea.types;
    return {
      ...message.sections,
      delivery_count: message.deliveries,
      message_id: message.id,
      application_properties: message.properties,
      message_annotations: {
        'x-opt-sequence-number': wrap_long(message.sequence),
        'x-opt-enqueued-time': wrap_timestamp(message.enqueued),
        ...(message.lock ? { 'x-opt-locked-until': wrap_timestamp(message.lock.until) } : {}),
      },
    };
  }

  message({ message, delivery, receiver, connection }) {
    if (receiver.address === '$cbs') return this.token(message, delivery, receiver, connection);
    if (receiver.address.endsWith('/$management')) return this.manage(message, delivery, receiver, connection);
    // The official client for Python counts on the third field of an error.
    const refuse = (condition, description) => delivery.reject({ condition, description, info: {} });
    const fault = this.faults.send(receiver.address);
    if (fault === 'reject') return refuse('com.microsoft:server-busy', 'The request was terminated because the namespace is being throttled. Error code: 50009.');
    if (fault === 'detach') return receiver.close({ condition: 'com.microsoft:server-busy', description: 'The namespace is being throttled. Error code: 50009.' });
    const size = (message.body?.content ?? []).length + JSON.stringify(message.application_properties ?? {}).length;
    if (size > receiver.topic.largest) return refuse(SIZE, `The received message (delivery-id:${delivery.id}, size:${size} bytes) exceeds the limit (${receiver.topic.largest} bytes) currently allowed on the link.`);
    receiver.topic.publish(
      {
        id: message.message_id,
        properties: message.application_properties ?? {},
        sections: { body: message.body, content_type: message.content_type, subject: message.subject },
      },
      Date.now(),
    );
    delivery.accept();
  }

  outcome(outcome, { delivery, sender }) {
    const settle = (outcome, fields) => delivery.update(true, this.rhea.message[outcome](fields).described());
    const { subscription } = sender;
    if (!subscription || sender.deletes || sender.deadLetters) return settle(outcome);
    const message = subscription.held(Buffer.from(delivery.tag));
    if (!message || (outcome === 'accepted' && this.faults.completion())) {
      return settle('rejected', { error: { condition: LOCK_LOST, description: 'The lock supplied is invalid.', info: {} } });
    }
    this.settle(subscription, message, outcome);
    settle(outcome);
  }

  settle(subscription, message, outcome) {
    if (outcome === 'accepted') subscription.complete(message);
    else if (outcome === 'rejected') subscription.bury(message, 'rejected');
    else subscription.release(message, outcome === 'modified');
  }

  reply(link, connection, request, status, description, body, extra) {
    // Some clients do not say where the answer goes: then it is the link from the same node in the same session.
    const paired = (one) => one.address === link.address && one.session === link.session && one.is_sender();
    const answers = connection.peer.replies.get(request.reply_to) ?? [...connection.peer.links].find(paired);
    const kebab = link.address === '$cbs';
    answers?.send({
      correlation_id: request.message_id,
      application_properties: {
        [kebab ? 'status-code' : 'statusCode']: this.rhea.types.wrap_int(status),
        [kebab ? 'status-description' : 'statusDescription']: description,
        ...extra,
      },
      ...(body === undefined ? {} : { body }),
    });
  }

  token(request, delivery, receiver, connection) {
    delivery.accept();
    const { name, type } = request.application_properties;
    const token = typeof request.body === 'string' ? request.body : request.body?.content;
    this.put.push({ audience: name, type });
    const fault = this.faults.token();
    if (fault) return this.reply(receiver, connection, request, fault, 'The namespace is being throttled.');
    const found = this.tokens.check(token, Date.now());
    if (found.why) return this.reply(receiver, connection, request, 401, found.why);
    if (!found.covers(name)) return this.reply(receiver, connection, request, 401, `InvalidAudience: The token is not for '${name}'.`);
    connection.peer.tokens.set(pathOf(name), found);
    return this.reply(receiver, connection, request, 202, 'Accepted');
  }

  manage(request, delivery, receiver, connection) {
    delivery.accept();
    const { operation } = request.application_properties;
    const [topic, , name] = receiver.address.split('/');
    const fail = (problem) => this.reply(receiver, connection, request, problem.status, problem.message, undefined, { errorCondition: problem.condition });
    try {
      const body = this.operate(operation, this.space.subscription(topic, name), request.body);
      this.reply(receiver, connection, request, 200, 'OK', body);
    } catch (problem) {
      fail(problem instanceof Problem ? problem : new Problem('amqp:internal-error', 500, String(problem.message)));
    }
  }

  operate(operation, subscription, body) {
    const tokens = () => (body['lock-tokens'] ?? []).map((token) => mixed(Buffer.from(token)));
    const held = (token) => {
      const message = subscription.held(token);
      if (!message) throw new Problem(LOCK_LOST, 410, 'The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue.');
      return message;
    };
    switch (operation) {
      case 'com.microsoft:update-disposition': {
        const outcome = { completed: 'accepted', abandoned: 'modified', suspended: 'rejected' }[body['disposition-status']];
        if (!outcome) throw new Problem('amqp:invalid-field', 400, 'disposition-status');
        const messages = tokens().map(held);
        if (outcome === 'accepted' && this.faults.completion()) throw new Problem(LOCK_LOST, 410, 'The lock supplied is invalid.');
        messages.forEach((message) => this.settle(subscription, message, outcome));
        return undefined;
      }
      case 'com.microsoft:renew-lock': {
        const until = Date.now() + subscription.lock;
        const messages = tokens().map(held);
        messages.forEach((message) => (message.lock.until = until));
        const times = messages.map(() => until);
        return { expirations: this.rhea.types.wrap_array(times, 0x83, undefined) };
      }
      case 'com.microsoft:add-rule': {
        const rule = body['rule-name'];
        const filter = body['rule-description']?.['correlation-filter'];
        if (!filter) throw new Problem('amqp:invalid-field', 400, 'only correlation filters');
        if (subscription.rules.has(rule)) throw new Problem('com.microsoft:entity-already-exists', 409, `The rule '${rule}' exists.`);
        subscription.rules.set(rule, { ...filter.properties });
        return undefined;
      }
      case 'com.microsoft:remove-rule': {
        const rule = body['rule-name'];
        if (!subscription.rules.delete(rule)) throw new Problem('amqp:not-found', 404, `The rule '${rule}' could not be found.`);
        return undefined;
      }
      default:
        throw new Problem('amqp:not-implemented', 501, operation);
    }
  }

  closes({ sender, receiver, session, connection }) {
    const links = sender || receiver ? [sender ?? receiver] : [...this.known(connection).peer.links].filter((link) => link.session === session);
    for (const link of links) this.leave(link);
  }

  /// What a receiver held stays locked until the lock's time is over: closing a link gives nothing back.
  leave(link) {
    link.subscription?.receivers.delete(link);
    link.connection.peer?.links.delete(link);
  }

  gone(connection) {
    this.connections.delete(connection);
    for (const link of [...(connection.peer?.links ?? [])]) this.leave(link);
  }

  detach(address, condition, description) {
    const path = address.toLowerCase();
    let count = 0;
    for (const connection of this.connections) {
      for (const link of [...connection.peer.links]) {
        if (link.address.toLowerCase() !== path) continue;
        count += 1;
        this.leave(link);
        link.close({ condition, description });
      }
    }
    return count;
  }

  /// Links whose token is over are closed, as the service does.
  tick(now) {
    for (const connection of this.connections) {
      for (const link of [...connection.peer.links]) {
        if (link.address === '$cbs' || link.address.endsWith('/$management')) continue;
        try {
          this.authorise(connection, link.address, link.subscription ? 'Listen' : 'Send');
        } catch (problem) {
          this.leave(link);
          link.close({ condition: problem.condition, description: 'ExpiredToken: The token is expired.' });
        }
      }
    }
    this.space.tick(now);
  }
}

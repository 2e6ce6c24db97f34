// A stand-in for Azure Service Bus. It speaks real AMQP 1.0 and the HTTP management of entities on one port, and checks
// signatures. Takes orders on its standard input and answers each with "ok <what>" or "failed <why>". When the input ends,
// because the test process is gone for whatever reason, it ends too.
//
// Argument: the folder with node_modules.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { TLSSocket, createSecureContext } from 'node:tls';

import { Amqp } from './amqp.mjs';
import { Problem, Space } from './entities.mjs';
import { serve } from './http.mjs';
import { Tokens } from './tokens.mjs';

const home = process.argv[2];
const rhea = createRequire(`${home}/package.json`)('rhea');

const space = new Space();
const tokens = new Tokens();
const sockets = new Set();
let port = 0;
let server = null;
let context = null;

/// What goes wrong next, and how often.
const due = { send: 0, how: 'reject', attach: 0, token: 0, http: 0, completion: 0 };
const once = (what) => due[what] > 0 && due[what]-- > 0;
const busy = () => new Problem('com.microsoft:server-busy', 429, 'The namespace is being throttled. Error code: 50009.');
const faults = {
  send: () => (once('send') ? due.how : null),
  attach: () => {
    if (once('attach')) throw busy();
  },
  http: () => {
    if (once('http')) throw busy();
  },
  token: () => (once('token') ? 429 : 0),
  completion: () => once('completion'),
};

const amqp = new Amqp(rhea, space, tokens, faults);
const http = serve(space, tokens, faults);
const clock = setInterval(() => amqp.tick(Date.now()), 10);
clock.unref();

function connected(socket) {
  sockets.add(socket);
  socket.setNoDelay(true);
  if (context) speaks(new TLSSocket(socket, { isServer: true, secureContext: context }));
  else speaks(socket);
}

function speaks(socket) {
  socket.on('close', () => sockets.delete(socket));
  socket.on('error', () => {});
  // Whoever speaks AMQP says so first.
  socket.once('data', (first) => {
    socket.pause();
    socket.unshift(first);
    if (first.subarray(0, 4).toString() === 'AMQP') amqp.accept(socket);
    else http.emit('connection', socket);
    socket.resume();
  });
}

function disconnect() {
  for (const socket of sockets) socket.destroy();
  return String(sockets.size);
}

const orders = {
  /// On the same port, if there was one.
  start: () =>
    new Promise((done, failed) => {
      server = createServer(connected);
      server.once('error', failed);
      server.listen(port, '127.0.0.1', () => {
        port = server.address().port;
        done(`127.0.0.1:${port}`);
      });
    }),
  /// As when a machine loses its power: what it held stays.
  stop: () =>
    new Promise((done) => {
      server.close(() => done('stopped'));
      disconnect();
    }),
  disconnect,
  wipe() {
    space.topics.clear();
    return 'empty';
  },
  /// From now on everything is encrypted.
  tls({ cert, key }) {
    context = createSecureContext({ cert: readFileSync(cert), key: readFileSync(key) });
    return 'encrypted';
  },
  rule({ name, key, claims }) {
    tokens.rules.set(name, { key, claims });
    return name;
  },
  topic({ name, ...set }) {
    space.createTopic(name, set);
    return name;
  },
  subscription({ topic, name, ...set }) {
    space.createSubscription(topic, name, set);
    return name;
  },
  delete({ topic, name }) {
    if (name) space.deleteSubscription(topic, name);
    else space.deleteTopic(topic);
    return topic;
  },
  largest({ topic, bytes }) {
    space.topic(topic).largest = bytes;
    return String(bytes);
  },
  lock({ topic, name, milliseconds }) {
    space.subscription(topic, name).lock = milliseconds;
    return String(milliseconds);
  },
  /// The next ones fail: `send`, `attach`, `token`, `http` are throttled, `completion` finds its lock lost.
  fail({ what, times, how }) {
    due[what] = times;
    due.how = how ?? 'reject';
    return what;
  },
  /// How many of them are still to come.
  due: ({ what }) => String(due[what]),
  /// Every lock of a subscription is over now.
  expire({ topic, name }) {
    const subscription = space.subscription(topic, name);
    for (const one of subscription.messages) if (one.lock) one.lock.until = 0;
    subscription.tick(Date.now());
    return name;
  },
  detach: ({ address }) => String(amqp.detach(address, 'amqp:internal-error', 'The service was unable to process the request; please retry the operation.')),
  lifetime({ seconds }) {
    tokens.lifetime = seconds;
    return String(seconds);
  },
  refuse({ why }) {
    tokens.refuse = why ?? null;
    return 'refuses';
  },
  asked: () => JSON.stringify(tokens.asked),
  put: () => JSON.stringify(amqp.put),
  state: () => JSON.stringify(space.state()),
};

const say = (line) => process.stdout.write(`${line}\n`);
// What a library has to say is not for the one who gives the orders.
console.info = console.warn = console.log = () => {};
say(`ok ${home}`);
for await (const line of createInterface({ input: process.stdin })) {
  const [order, ...rest] = line.split(' ');
  try {
    say(`ok ${await orders[order](JSON.parse(rest.join(' ') || '{}'))}`);
  } catch (error) {
    say(`failed ${String(error.message ?? error).replaceAll('\n', ' ')}`);
  }
}
process.exit(0);

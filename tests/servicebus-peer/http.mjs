// The management of entities by HTTP (Atom), as far as the broker uses it, and the identity endpoints.

import { createServer } from 'node:http';

import { Problem } from './entities.mjs';

const ENTRY = 'http://www.w3.org/2005/Atom';
const NAMES = 'http://schemas.microsoft.com/netservices/2010/10/servicebus/connect';

/// What XML is needed for here: the text of one element, which has no elements of its own.
const text = (xml, name) => new RegExp(`<${name}(?: [^>]*)?>([^<]*)</${name}>`).exec(xml)?.[1] ?? null;

const plain = (xml) =>
  xml.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&apos;', "'").replaceAll('&amp;', '&');

/// ISO 8601, without months.
function milliseconds(duration) {
  if (duration === null) return undefined;
  const parts = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(duration);
  if (!parts) throw new Problem('bad', 400, `'${duration}' is no duration`);
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] = parts;
  return (((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
}

/// The service reads the elements of a description in this order, and ignores one that comes too late.
const ORDER = {
  TopicDescription: ['DefaultMessageTimeToLive', 'MaxSizeInMegabytes', 'RequiresDuplicateDetection', 'DuplicateDetectionHistoryTimeWindow', 'EnableBatchedOperations', 'SupportOrdering', 'AutoDeleteOnIdle'],
  SubscriptionDescription: ['LockDuration', 'RequiresSession', 'DefaultMessageTimeToLive', 'DeadLetteringOnMessageExpiration', 'DeadLetteringOnFilterEvaluationExceptions', 'DefaultRuleDescription', 'MaxDeliveryCount', 'EnableBatchedOperations', 'ForwardTo', 'ForwardDeadLetteredMessagesTo', 'AutoDeleteOnIdle'],
};

function ordered(xml, description) {
  if (!xml.includes(`<entry xmlns="${ENTRY}">`) || !xml.includes(`<${description} xmlns="${NAMES}"`)) {
    throw new Problem('bad', 400, `the body is no entry with a ${description}`);
  }
  const places = ORDER[description].map((name) => xml.indexOf(`<${name}`)).filter((place) => place >= 0);
  if (places.some((place, n) => n > 0 && place < places[n - 1])) {
    throw new Problem('bad', 400, `the elements of ${description} are out of order`);
  }
}

function topicOf(xml) {
  ordered(xml, 'TopicDescription');
  const duplicates = text(xml, 'RequiresDuplicateDetection') === 'true';
  const window = milliseconds(text(xml, 'DuplicateDetectionHistoryTimeWindow')) ?? 600_000;
  if (duplicates && (window < 20_000 || window > 7 * 86_400_000)) throw new Problem('bad', 400, 'duplicate window');
  return { duplicates: duplicates ? window : 0, ttl: milliseconds(text(xml, 'DefaultMessageTimeToLive')) };
}

function ruleOf(xml) {
  const rule = /<DefaultRuleDescription>(.*)<\/DefaultRuleDescription>/s.exec(xml)?.[1];
  if (!rule) return null;
  if (!rule.includes('i:type="CorrelationFilter"')) throw new Problem('bad', 400, 'only correlation filters');
  const properties = {};
  for (const [, pair] of rule.matchAll(/<KeyValueOfstringanyType>(.*?)<\/KeyValueOfstringanyType>/gs)) {
    properties[plain(text(pair, 'Key'))] = plain(text(pair, 'Value'));
  }
  return { name: text(rule, 'Name'), properties };
}

function subscriptionOf(xml) {
  ordered(xml, 'SubscriptionDescription');
  const lock = milliseconds(text(xml, 'LockDuration'));
  if (lock !== undefined && (lock <= 0 || lock > 300_000)) throw new Problem('bad', 400, 'a lock lasts five minutes at most');
  const idle = milliseconds(text(xml, 'AutoDeleteOnIdle'));
  if (idle !== undefined && idle < 300_000) throw new Problem('bad', 400, 'AutoDeleteOnIdle is five minutes at least');
  const forward = text(xml, 'ForwardDeadLetteredMessagesTo');
  return {
    lock,
    ttl: milliseconds(text(xml, 'DefaultMessageTimeToLive')),
    deliveries: Number(text(xml, 'MaxDeliveryCount') ?? 10),
    forward: forward && forward.replace(/^[a-z]+:\/\/[^/]*\//, ''),
    rule: ruleOf(xml),
  };
}

export function serve(space, tokens, faults) {
  const allowed = (headers, path) => {
    const given = headers.authorization ?? '';
    const found = tokens.check(given.replace(/^Bearer /, ''), Date.now());
    if (found.why) throw new Problem('unauthorized', 401, found.why);
    if (!found.claims.includes('Manage') || !found.covers(path)) {
      throw new Problem('unauthorized', 401, "Authorization failed: Manage claim is required for this operation");
    }
  };

  const act = (method, path, body, headers) => {
    allowed(headers, path);
    faults.http(path);
    const [topic, subscriptions, name] = path.split('/').slice(1).map(decodeURIComponent);
    const one = subscriptions?.toLowerCase() === 'subscriptions';
    if (method === 'PUT' && one) {
      const set = subscriptionOf(body);
      if (set.forward && !headers.servicebusdlqsupplementaryauthorization) {
        throw new Problem('unauthorized', 401, 'the dead letters go to an entity for which there is no token');
      }
      space.createSubscription(topic, name, set);
    } else if (method === 'PUT') space.createTopic(topic, topicOf(body));
    else if (method === 'DELETE' && one) space.deleteSubscription(topic, name);
    else if (method === 'GET' && one) space.subscription(topic, name);
    else if (method === 'GET') {
      const found = space.topic(topic);
      return `<entry xmlns="${ENTRY}"><content><TopicDescription xmlns="${NAMES}"><RequiresDuplicateDetection>${found.window > 0}</RequiresDuplicateDetection></TopicDescription></content></entry>`;
    } else throw new Problem('bad', 405, method);
    return '';
  };

  return createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const url = new URL(request.url, 'http://peer');
    const identity = tokens.answer(request.method, url, request.headers, body);
    if (identity) {
      response.writeHead(identity.status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(identity.body));
      return;
    }
    try {
      const answer = act(request.method, url.pathname, body, request.headers);
      response.writeHead(request.method === 'PUT' ? 201 : 200, { 'content-type': 'application/atom+xml' });
      response.end(answer);
    } catch (problem) {
      const status = problem.status ?? 500;
      response.writeHead(status, { 'content-type': 'application/xml' });
      response.end(`<Error><Code>${status}</Code><Detail>${problem.message}</Detail></Error>`);
    }
  });
}

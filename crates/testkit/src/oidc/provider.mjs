// Owns one OpenID provider. Takes orders on its standard input and answers each with "ok <what>" or "failed <why>".
// When the input ends, because the test process is gone for whatever reason, it ends too.
//
// Argument: the folder with node_modules.
//
// Its login form takes any name and password; who is in which group is said by an order.

import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const home = process.argv[2];
const load = (path) => import(pathToFileURL(`${home}/node_modules/${path}`));
const { default: Provider } = await load('oidc-provider/lib/index.js');
const jose = await load('jose/dist/webapi/index.js');

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const groups = {};
const clients = [];
let port = 0;
let key;
let forgery = null;
let groupsIn = 'userinfo';
let handler = null;
// When the token endpoint was asked, and whether the next one is told to ask less often.
const asked = [];
let slowDown = false;
let heard = () => {};
let server = null;

const issuer = () => `http://127.0.0.1:${port}`;

async function fresh() {
  const { privateKey } = await jose.generateKeyPair('ES256', { extractable: true });
  key = { ...(await jose.exportJWK(privateKey)), kid: crypto.randomUUID(), use: 'sig', alg: 'ES256' };
}

/// Made again whenever its clients or keys change, under the same address.
function rebuild() {
  const provider = new Provider(issuer(), {
    clients,
    jwks: { keys: [key] },
    cookies: { keys: ['of-the-tests'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
    scopes: ['openid', 'offline_access'],
    features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true } },
    conformIdTokenClaims: groupsIn === 'userinfo',
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        email: `${id}@example.com`,
        email_verified: true,
        name: id,
        groups: groups[id] ?? [],
      }),
    }),
    ttl: { AccessToken: 600, AuthorizationCode: 60, DeviceCode: 600, IdToken: 600, Interaction: 600, Grant: 600, Session: 600 },
  });
  provider.use(async (ctx, next) => {
    if (ctx.path === '/token') {
      asked.push(Date.now());
      heard();
      if (slowDown) {
        slowDown = false;
        ctx.status = 400;
        ctx.body = { error: 'slow_down' };
        return;
      }
    }
    await next();
    if (forgery && ctx.path === '/token' && ctx.body?.id_token) ctx.body = { ...ctx.body, id_token: await forged(ctx.body.id_token) };
  });
  handler = provider.callback();
}

/// The token that the provider would have given, but for what was ordered.
async function forged(token) {
  const { alg, stranger, ...claims } = forgery;
  const payload = { ...jose.decodeJwt(token), ...claims };
  if (alg === 'none') return new jose.UnsecuredJWT(payload).encode();
  if (alg === 'HS256') {
    // Signed with the public key, which everybody knows, as if it was a secret.
    const known = new TextEncoder().encode(JSON.stringify({ kty: key.kty, crv: key.crv, x: key.x, y: key.y }));
    return new jose.SignJWT(payload).setProtectedHeader({ alg, kid: key.kid }).sign(known);
  }
  const own = stranger ? (await jose.generateKeyPair('ES256')).privateKey : await jose.importJWK(key, 'ES256');
  return new jose.SignJWT(payload).setProtectedHeader({ alg: 'ES256', kid: key.kid }).sign(own);
}

function listen() {
  return new Promise((done, failed) => {
    server = createServer((request, response) => handler(request, response));
    server.once('error', failed);
    server.listen(port, '127.0.0.1', () => {
      port = server.address().port;
      done();
    });
  });
}

function close() {
  server.closeAllConnections();
  return new Promise((done) => server.close(done));
}

const orders = {
  async start() {
    await listen();
    if (!key) await fresh();
    rebuild();
    return issuer();
  },
  async stop() {
    await close();
    return 'stopped';
  },
  client({ id, secret, redirect }) {
    clients.push({
      client_id: id,
      redirect_uris: [redirect],
      grant_types: ['authorization_code', DEVICE],
      response_types: ['code'],
      id_token_signed_response_alg: 'ES256',
      ...(secret ? { client_secret: secret } : { token_endpoint_auth_method: 'none' }),
    });
    rebuild();
    return id;
  },
  groups({ of, are }) {
    groups[of] = are;
    return of;
  },
  groupsIn({ where }) {
    groupsIn = where;
    rebuild();
    return where;
  },
  forge(what) {
    forgery = Object.keys(what).length > 0 ? what : null;
    return 'forged';
  },
  slowDown() {
    slowDown = true;
    return 'slower';
  },
  /// How many milliseconds lay between the first and the second time that the token endpoint was asked.
  async pause() {
    while (asked.length < 2) {
      await new Promise((again) => {
        heard = again;
      });
    }
    return asked[1] - asked[0];
  },
  async rotate() {
    await fresh();
    rebuild();
    return 'rotated';
  },
};

// What the library has to say is not for the one who gives the orders.
console.info = console.warn = console.log = () => {};
const say = (line) => process.stdout.write(`${line}\n`);
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

// Who may do what: shared access signatures are checked as the service checks them, and tokens of Entra are those that this
// process gave out itself, at the addresses of a managed identity and of a tenant.

import { createHmac, timingSafeEqual } from 'node:crypto';

export class Tokens {
  constructor() {
    /// By the name of the rule: its key, and what it allows.
    this.rules = new Map();
    this.issued = new Map();
    this.lifetime = 3_600;
    /// What the identity endpoints were asked.
    this.asked = [];
    this.refuse = null;
    this.count = 0;
  }

  /// Why a token is refused, or the claims that it has, until when, and for which addresses.
  check(token, now) {
    if (token.startsWith('SharedAccessSignature ')) return this.signature(token, now);
    const found = this.issued.get(token);
    if (!found) return { why: 'InvalidSignature: The token was not issued by a trusted authority.' };
    if (found.until * 1000 <= now) return { why: 'ExpiredToken: The token is expired.' };
    return { claims: ['Manage', 'Send', 'Listen'], until: found.until * 1000, covers: () => true };
  }

  signature(token, now) {
    const fields = Object.fromEntries(
      token
        .slice('SharedAccessSignature '.length)
        .split('&')
        .map((pair) => {
          const at = pair.indexOf('=');
          return [pair.slice(0, at), pair.slice(at + 1)];
        }),
    );
    const rule = this.rules.get(decodeURIComponent(fields.skn ?? ''));
    const signed = createHmac('sha256', rule?.key ?? '').update(`${fields.sr}\n${fields.se}`).digest();
    const given = Buffer.from(decodeURIComponent(fields.sig ?? ''), 'base64');
    if (!rule || given.length !== signed.length || !timingSafeEqual(given, signed)) {
      return { why: 'InvalidSignature: The token has an invalid signature.' };
    }
    const until = Number(fields.se) * 1000;
    if (!(until > now)) return { why: `ExpiredToken: The token is expired. Expiration time: ${fields.se}` };
    const path = pathOf(decodeURIComponent(fields.sr));
    const covers = (address) => path === '' || `${pathOf(address)}/`.startsWith(`${path}/`);
    return { claims: rule.claims, until, covers };
  }

  /// Answers for IMDS (a managed identity) and for a tenant (a federated token); `null` for any other address.
  answer(method, url, headers, body) {
    const imds = url.pathname === '/metadata/identity/oauth2/token';
    const tenant = method === 'POST' && url.pathname.endsWith('/oauth2/v2.0/token');
    if (!imds && !tenant) return null;
    const form = Object.fromEntries(imds ? url.searchParams : new URLSearchParams(body));
    this.asked.push({ kind: imds ? 'identity' : 'tenant', path: url.pathname, ...form });
    const no = (status, error, description) => ({ status, body: { error, error_description: description } });
    if (this.refuse) return no(400, 'invalid_request', this.refuse);
    if (imds && headers.metadata !== 'true') return no(400, 'bad_request', 'Required metadata header not specified');
    if (imds && form.resource !== 'https://servicebus.azure.net') return no(400, 'invalid_resource', form.resource);
    if (tenant && form.scope !== 'https://servicebus.azure.net/.default') return no(400, 'invalid_scope', form.scope);
    if (tenant && form.client_assertion !== 'federated') {
      return no(401, 'invalid_client', 'AADSTS700211: No matching federated identity record found.');
    }
    const token = `entra-${++this.count}`;
    const until = Math.floor(Date.now() / 1000) + this.lifetime;
    this.issued.set(token, { until });
    // IMDS writes numbers as text, the tenant as numbers.
    const lifetime = imds ? String(this.lifetime) : this.lifetime;
    return { status: 200, body: { access_token: token, expires_in: lifetime, token_type: 'Bearer' } };
  }
}

/// Without scheme, host and capitals.
export function pathOf(address) {
  const rest = address.replace(/^[a-z]+:\/\/[^/]*/i, '');
  return rest.replace(/^\/+|\/+$/g, '').toLowerCase();
}

// The repositories of the demo fleet, and what its engine makes of them.

import type { Play } from './harness/engine';
import type { Files } from './harness/repositories';

const CART = `import { price } from './price';

export interface Line {
  sku: string;
  count: number;
}

/** What the customer pays, in cents. */
export function total(lines: Line[]): number {
  let sum = 0;
  for (const line of lines) {
    sum += price(line.sku) * line.count;
  }
  return Math.floor(sum);
}

export function isEmpty(lines: Line[]): boolean {
  return lines.length === 0;
}
`;

const CART_FIXED = `import { price } from './price';

export interface Line {
  sku: string;
  count: number;
}

/** What the customer pays, in cents. Each line is rounded, as it is printed on the invoice. */
export function total(lines: Line[]): number {
  return lines.reduce((sum, line) => sum + lineTotal(line), 0);
}

export function lineTotal(line: Line): number {
  return Math.round(price(line.sku) * line.count);
}

export function isEmpty(lines: Line[]): boolean {
  return lines.length === 0;
}
`;

const PRICE = `const PRICES: Record<string, number> = { tea: 249.5, mug: 1290, kettle: 4999 };

export function price(sku: string): number {
  return PRICES[sku] ?? 0;
}
`;

const SEND = `export async function send(url: string, body: string): Promise<void> {
  await fetch(url, { method: 'POST', body });
}
`;

const SEND_WITH_RETRY = `const TRIES = 5;

/** Tries again with longer waits; a receiver that says 410 is gone for good. */
export async function send(url: string, body: string, id: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await fetch(url, { method: 'POST', body, headers: { 'webhook-id': id } });
    if (answer.ok || answer.status === 410) return;
    if (attempt === TRIES) throw new Error(\`\${url} answered \${answer.status}\`);
    await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** attempt));
  }
}
`;

export const REPOS: Record<string, Files> = {
  storefront: {
    'README.md': '# Storefront\n\nWhat customers see.\n',
    'src/cart.ts': CART,
    'src/price.ts': PRICE,
    'src/webhooks/send.ts': SEND,
    'test.sh': 'echo "cart: 14 passed"\necho "webhooks: 6 passed"\n',
  },
  atlas: {
    'README.md': '# Atlas\n\nMaps and routes.\n',
    'routes.txt': 'north\nsouth\n',
    'test.sh': 'echo "ok: 212 routes"\n',
  },
  ledger: { 'README.md': '# Ledger\n', 'rules.txt': 'double entry\n', 'test.sh': 'echo ok\n' },
};

export const PLAYS: Play[] = [
  {
    when: 'is printed on the invoice',
    says: [
      'I compare the cart with the invoice printer first.',
      'The invoice rounds every line, the cart only the sum. I move the rounding into `lineTotal`.',
      'All 14 tests of the cart pass. The totals now match the printed invoice to the cent.',
    ],
    files: { 'src/cart.ts': CART_FIXED },
    usd: 1.84,
    tokens: 148_200,
  },
  {
    when: 'receiver is down',
    says: [
      'I read the sender and what receivers are promised.',
      'A message is tried five times with growing waits, under one id.',
      'Done: five tries, one id, and 410 ends it.',
    ],
    files: { 'src/webhooks/send.ts': SEND_WITH_RETRY },
    usd: 2.37,
    tokens: 203_900,
  },
  {
    when: 'price list',
    says: ['I look for where prices are read.', 'They are cached for a minute now.'],
    files: { 'src/price.ts': `// Read once a minute.\n${PRICE}` },
    usd: 0.92,
    tokens: 71_000,
  },
  {
    when: 'README says nothing',
    says: ['I write down how it is started.', 'The README has a section for newcomers now.'],
    files: { 'README.md': '# Storefront\n\nWhat customers see.\n\n## Start\n\n    npm start\n' },
    usd: 0.31,
    tokens: 24_400,
  },
  {
    when: 'northern routes',
    says: ['I read the routes.', 'Two routes were missing; both are in now.'],
    files: { 'routes.txt': 'north\nnorth-east\nnorth-west\nsouth\n' },
    usd: 3.1,
    tokens: 251_000,
  },
  {
    when: 'release notes',
    says: ['I go through the merged changes.', 'The notes are written.'],
    files: { 'NOTES.md': '# 2.4\n\nMore routes in the north.\n' },
    usd: 0.74,
    tokens: 52_300,
  },
];

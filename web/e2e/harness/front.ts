// For whoever works on the page: GIGA_PAGE=dist tests a page that is built but not yet in the binary. It is served
// under the coordinator's own headers; everything else is the coordinator's.

import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const TYPES: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
};

export class Front {
  private constructor(
    private readonly server: Server,
    private readonly folder: string,
    private readonly coordinator: URL,
  ) {}

  static async start(folder: string, coordinator: string): Promise<Front> {
    const server = createServer();
    const front = new Front(server, folder, new URL(coordinator));
    server.on('request', (asked, answer) => void front.answer(asked, answer));
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    return front;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise<void>((closed) => this.server.close(() => closed()));
  }

  private async answer(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const path = new URL(asked.url ?? '/', this.url).pathname;
    if (/^\/(api|auth|livez|readyz|metrics)\b/.test(path)) return this.passOn(asked, answer);
    const name = path.split('/').at(-1) ?? '';
    if (name.includes('.')) return this.asset(path, answer);
    const nonce = Math.random().toString(36).slice(2);
    const html = await readFile(join(this.folder, 'index.html'), 'utf8');
    answer.setHeader('content-type', 'text/html; charset=utf-8');
    answer.setHeader('content-security-policy', policy(nonce));
    answer.end(html.replace('__CSP_NONCE__', nonce));
  }

  private async asset(path: string, answer: ServerResponse): Promise<void> {
    try {
      const bytes = await readFile(join(this.folder, path));
      answer.setHeader('content-type', TYPES[path.split('.').at(-1) ?? ''] ?? 'application/octet-stream');
      answer.setHeader('content-encoding', 'gzip');
      answer.end(await promisify(gzip)(bytes));
    } catch {
      answer.statusCode = 404;
      answer.end();
    }
  }

  private passOn(asked: IncomingMessage, answer: ServerResponse): void {
    const { method, headers, url: path } = asked;
    const { hostname, port } = this.coordinator;
    const onward = request({ hostname, port, method, path, headers }, (answered) => {
      answer.writeHead(answered.statusCode ?? 502, answered.headers);
      // A stream is open before it says anything.
      answer.flushHeaders();
      answered.pipe(answer);
      answered.on('error', () => answer.destroy());
    });
    onward.on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    asked.pipe(onward);
  }
}

function policy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

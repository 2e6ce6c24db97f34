// The OpenID provider of the Rust tests, in a process of its own: it ends when its input does.

import { type ChildProcess, spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface, type Interface } from 'node:readline';

const CLIENT = 'giga-tests';

export class Provider {
  private constructor(
    private readonly child: ChildProcess,
    private readonly answers: AsyncIterator<string>,
    private readonly lines: Interface,
    private issuer = '',
  ) {}

  static async start(): Promise<Provider> {
    const script = resolve('../crates/testkit/src/oidc/provider.mjs');
    const child = spawn('node', ['--no-warnings', script, resolve('../target/tools/oidc-provider')], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    if (!child.stdout) throw new Error('the provider has no output');
    const lines = createInterface({ input: child.stdout });
    const provider = new Provider(child, lines[Symbol.asyncIterator](), lines);
    await provider.answer();
    provider.issuer = await provider.order('start');
    return provider;
  }

  /// What a coordinator is started with, so that people sign in here.
  settings(grants: string[]): string[] {
    const each = grants.flatMap((grant) => ['--oidc-grant', grant]);
    return ['--oidc-issuer', this.issuer, '--oidc-client-id', CLIENT, ...each];
  }

  async knows(coordinator: string): Promise<void> {
    await this.order('client', { id: CLIENT, redirect: `${coordinator}/auth/callback` });
  }

  async groups(of: string, are: string[]): Promise<void> {
    await this.order('groups', { of, are });
  }

  async stop(): Promise<void> {
    const over = new Promise((ended) => this.child.once('exit', ended));
    this.lines.close();
    this.child.stdin?.end();
    await over;
  }

  private async order(order: string, what: object = {}): Promise<string> {
    this.child.stdin?.write(`${order} ${JSON.stringify(what)}\n`);
    return this.answer();
  }

  private async answer(): Promise<string> {
    const { value, done } = await this.answers.next();
    if (done) throw new Error('the provider has ended; `cargo xtask setup` installs it');
    const line = String(value);
    if (!line.startsWith('ok ')) throw new Error(`the provider says: ${line}`);
    return line.slice(3);
  }
}

// Programs that a test starts, and the promise that none of them outlives it.
//
// A guard, one shell, reads the groups that were started from a pipe. When the pipe ends, because the tests are over or
// because they were killed themselves, it ends every group and removes the folder.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const GUARD = `
groups=
while read -r group; do groups="$groups $group"; done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }
`;
const START = 60_000;
const LEAVE = 20_000;

export class Folder {
  private constructor(
    readonly path: string,
    private readonly guard: ChildProcess,
  ) {}

  static async make(): Promise<Folder> {
    const path = await mkdtemp(join(tmpdir(), 'giga-e2e-'));
    const guard = spawn('sh', ['-c', GUARD, 'guard', path], {
      stdio: ['pipe', 'ignore', 'inherit'],
      detached: true,
    });
    return new Folder(path, guard);
  }

  /// Starts a program in a group of its own; what it says on stderr is kept in `NAME.log`.
  start(name: string, program: string, args: string[], env: Record<string, string>): Program {
    const log = join(this.path, `${name}.log`);
    const stderr = openSync(log, 'a');
    const child = spawn(program, args, {
      cwd: this.path,
      env,
      detached: true,
      stdio: ['pipe', 'pipe', stderr],
    });
    closeSync(stderr);
    if (child.pid !== undefined) this.guard.stdin?.write(`${child.pid}\n`);
    return new Program(name, child, log);
  }

  async remove(): Promise<void> {
    const over = ended(this.guard);
    this.guard.stdin?.end();
    await over;
    if (existsSync(this.path)) throw new Error(`${this.path} could not be removed`);
  }
}

export class Program {
  constructor(
    readonly name: string,
    private readonly child: ChildProcess,
    private readonly log: string,
  ) {}

  /// The rest of the first line on stdout that begins so.
  async says(beginning: string): Promise<string> {
    const { stdout } = this.child;
    if (!stdout) throw new Error(`${this.name} has no stdout`);
    const lines = createInterface({ input: stdout });
    return new Promise((resolve, reject) => {
      const fail = (why: string) => reject(new Error(`${this.name} ${why}:\n${this.printed()}`));
      const timer = setTimeout(() => fail('is not ready'), START);
      lines.on('line', (line) => {
        if (!line.startsWith(beginning)) return;
        clearTimeout(timer);
        resolve(line.slice(beginning.length).trim());
      });
      lines.on('close', () => {
        clearTimeout(timer);
        fail('ended before it was ready');
      });
    });
  }

  printed(): string {
    return readFileSync(this.log, 'utf8').slice(-4_000);
  }

  /// As when its machine loses its power.
  async kill(): Promise<void> {
    await this.end('SIGKILL');
  }

  /// Asks it to leave, and sees to it that it does.
  async leave(): Promise<void> {
    this.child.stdin?.end();
    const patience = setTimeout(() => this.signal('SIGKILL'), LEAVE);
    await this.end('SIGTERM');
    clearTimeout(patience);
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const over = ended(this.child);
    this.signal(signal);
    await over;
  }

  private signal(signal: NodeJS.Signals): void {
    if (this.child.pid === undefined) return;
    try {
      process.kill(-this.child.pid, signal);
    } catch {
      // It has left by itself.
    }
  }
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once('exit', () => resolve());
  });
}

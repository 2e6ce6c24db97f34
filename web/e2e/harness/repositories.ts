// Bare repositories that play the remotes. Git runs without the settings of whoever runs the tests.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export type Files = Record<string, string>;

export class Repository {
  private constructor(readonly path: string) {}

  /// With one commit on `main`.
  static async make(repos: string, name: string, files: Files): Promise<Repository> {
    const path = join(repos, `${name}.git`);
    await mkdir(path, { recursive: true });
    await git(path, 'init', '--quiet', '--bare', '--initial-branch=main');
    const seed = await mkdtemp(join(dirname(repos), 'seed-'));
    for (const [file, text] of Object.entries(files)) {
      await mkdir(dirname(join(seed, file)), { recursive: true });
      await writeFile(join(seed, file), text);
    }
    await git(seed, 'init', '--quiet', '--initial-branch=main');
    await git(seed, 'add', '.');
    await git(seed, 'commit', '--quiet', '--message', 'First version');
    await git(seed, 'push', '--quiet', path, 'main');
    await rm(seed, { recursive: true });
    return new Repository(path);
  }

  /// The subjects of the commits on `main`, newest first.
  async subjects(): Promise<string[]> {
    return (await git(this.path, 'log', '--format=%s', 'main', '--')).trim().split('\n');
  }

  /// A file as it is on `main`.
  async file(name: string): Promise<string> {
    return git(this.path, 'show', `main:${name}`);
  }
}

async function git(cwd: string, ...args: string[]): Promise<string> {
  const who = ['-c', 'user.name=You', '-c', 'user.email=you@example.invalid'];
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
  const { stdout } = await run('git', [...who, ...args], { cwd, env });
  return stdout;
}

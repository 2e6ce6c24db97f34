// A real coordinator with real factories and real repositories, in a folder of its own.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import createClient, { type Client } from 'openapi-fetch';
import type { paths } from '../../src/api/schema';
import type { FeedEvent, Job } from '../../src/api/types';
import type { Role, Stage } from '../../src/api/vocabulary';
import { SseParser } from '../../src/live/sse';
import { Front } from './front';
import { Folder, type Program } from './processes';
import { type Files, Repository } from './repositories';

/// A step that takes longer than this will not come any more.
const PATIENCE = 60_000;

export interface WorldOptions {
  /// Names of factories that are started at once.
  factories?: string[];
  /// Repositories by name.
  repos?: Record<string, Files>;
  flags?: Record<string, unknown>;
  /// What the coordinator is started with in addition, once that is known.
  serve?: () => Promise<string[]>;
}

export interface FactoryOptions {
  seats?: number;
  products?: string[];
  /// Programs that only this machine has, by name: what they do when they are run.
  programs?: Record<string, string>;
}

type Api = Client<paths>;
type Manifest = { name: string } & Record<string, unknown>;
/// To the schema a manifest is only an object.
export const sent = (manifest: Manifest) => manifest as unknown as Record<string, never>;

export class World {
  readonly repos = new Map<string, Repository>();
  private readonly factories = new Map<string, Program>();
  private coordinator: Program | undefined;
  private front: Front | undefined;
  private address = '';
  private admin = '';

  private constructor(
    readonly folder: Folder,
    private readonly serve: string[],
  ) {}

  static async start({
    factories = [],
    repos = {},
    flags = {},
    serve = async () => [],
  }: WorldOptions = {}): Promise<World> {
    const world = new World(await Folder.make(), await serve());
    try {
      await mkdir(join(world.folder.path, 'repos'));
      await writeFile(world.playing, '');
      for (const [name, files] of Object.entries(repos)) await world.repository(name, files);
      await world.startCoordinator();
      // Whatever is missed is missed soon.
      for (const [name, value] of Object.entries({ heartbeat_interval_ms: 1_000, ...flags })) {
        await world.flag(name, value);
      }
      await Promise.all(factories.map((name) => world.factory(name)));
      return world;
    } catch (error) {
      await world.stop();
      throw error;
    }
  }

  /// Where the page is.
  get url(): string {
    return this.front?.url ?? this.address;
  }

  /// Where the API is, whoever serves the page.
  get coordinatorUrl(): string {
    return this.address;
  }

  get token(): string {
    return this.admin;
  }

  /// Calls with the admin's token, or another one.
  api(token = this.admin): Api {
    return createClient<paths>({
      baseUrl: this.address,
      headers: { Authorization: `Bearer ${token}` },
      querySerializer: { array: { style: 'form', explode: false } },
    });
  }

  /// On the same port and data as before, when there was one.
  async startCoordinator(): Promise<void> {
    const listen = this.address ? new URL(this.address).host : '127.0.0.1:0';
    const args = ['serve', '--data', join(this.folder.path, 'data'), '--listen', listen, ...this.serve];
    this.coordinator = this.folder.start('coordinator', binary(), args, this.environment());
    this.address = await this.coordinator.says('ready ');
    this.admin = (await readFile(join(this.folder.path, 'data', 'admin.token'), 'utf8')).trim();
    const page = process.env.GIGA_PAGE;
    if (page && !this.front) this.front = await Front.start(resolve(page), this.address);
    const document = await (await fetch(this.url)).text();
    if (!document.includes('id="root"')) {
      throw new Error(`${binary()} has no page in it: GIGA_WEB=require cargo build -p giga says why`);
    }
  }

  /// As when its machine loses its power.
  async killCoordinator(): Promise<void> {
    await this.coordinator?.kill();
  }

  /// Ready to take jobs when it returns.
  async factory(name: string, options: FactoryOptions = {}): Promise<void> {
    const { seats = 2, products = [], programs = {} } = options;
    const base = join(this.folder.path, 'factories', name);
    // Not in its own folder, which jobs do not see.
    const bin = join(this.folder.path, 'programs', name);
    await mkdir(bin, { recursive: true });
    for (const [program, script] of Object.entries(programs)) {
      await writeFile(join(bin, program), script);
      await chmod(join(bin, program), 0o755);
    }
    const args = ['factory', 'run', '--until-stdin-ends', '--id', name, '--seats', String(seats)];
    args.push('--url', this.address, '--base', base, '--repos', join(this.folder.path, 'repos'));
    args.push('--checkpoint-every', '1s', '--log', 'info');
    // Scripts of the tests wait for files in it.
    args.push('--sandbox-write', this.folder.path);
    const env = { ...this.environment(bin), GIGA_TOKEN: await this.enrol(name, products) };
    const program = this.folder.start(name, binary(), args, env);
    this.factories.set(name, program);
    await program.says('ready');
  }

  async killFactory(name: string): Promise<void> {
    await this.factories.get(name)?.kill();
    this.factories.delete(name);
  }

  /// The factory's own token, which a machine would use.
  async enrol(factoryId: string, products: string[] = []): Promise<string> {
    const body = { factoryId, products, capabilities: [] };
    return (await good(this.api().POST('/api/fleet/factories/enroll', { body }))).token;
  }

  async repository(name: string, files: Files): Promise<Repository> {
    const made = await Repository.make(join(this.folder.path, 'repos'), name, files);
    this.repos.set(name, made);
    return made;
  }

  async issueToken(role: Role, products: string[] = [], label = `a ${role}`) {
    return good(this.api().POST('/api/fleet/tokens', { body: { role, products, label } }));
  }

  async flag(name: string, value: unknown): Promise<void> {
    await good(this.api().PUT('/api/fleet/flags/{name}', { params: { path: { name } }, body: { value } }));
  }

  async submit(manifest: Manifest, bodyMd = 'Do it.'): Promise<Job> {
    const body = { manifest: sent({ product: 'demo', ...manifest }), bodyMd };
    return (await good(this.api().POST('/api/fleet/jobs', { body }))).job;
  }

  async addChildren(
    id: string,
    children: { manifest: Record<string, never>; bodyMd: string }[],
  ): Promise<Job[]> {
    const call = { params: { path: { id } }, body: { children } };
    return (await good(this.api().POST('/api/fleet/jobs/{id}/children', call))).jobs.map(({ job }) => job);
  }

  async job(id: string): Promise<Job> {
    return good(this.api().GET('/api/fleet/jobs/{id}', { params: { path: { id } } }));
  }

  waitFor(id: string, ...stages: Stage[]): Promise<Job> {
    return this.until(id, (job) => stages.some((stage) => stage === job.stage), stages.join(' or '));
  }

  /// The job as soon as it is so: looked at again whenever something happened to it.
  async until(id: string, so: (job: Job) => boolean, what = 'as wanted'): Promise<Job> {
    const signal = AbortSignal.timeout(PATIENCE);
    let newest = await this.job(id);
    try {
      for await (const _ of this.events(`/api/fleet/jobs/${id}/events/stream`, signal)) {
        newest = await this.job(id);
        if (so(newest)) return newest;
      }
      throw new Error('the stream ended');
    } catch (cause) {
      const failure = newest.failure ? ` (${newest.failure.reason}: ${newest.failure.detail})` : '';
      throw new Error(`${newest.name} is ${newest.stage}${failure} and not ${what}`, { cause });
    }
  }

  /// For what has no event: looks again until it is so.
  async eventually(what: string, so: () => Promise<boolean>): Promise<void> {
    const end = Date.now() + PATIENCE;
    while (!(await so())) {
      if (Date.now() > end) throw new Error(`it never came to pass: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /// Something that is there as long as the world is: a script that waits sees that it is over.
  get playing(): string {
    return join(this.folder.path, 'playing');
  }

  /// A gate in a script, which the test opens.
  gate(name: string): Gate {
    const file = join(this.folder.path, `gate-${name}`);
    const wait = `until [ -e '${file}' ] || [ ! -e '${this.playing}' ]; do sleep 0.05; done`;
    return { wait, open: () => writeFile(file, '') };
  }

  /// What a command of the admin's prints.
  async giga(...args: string[]): Promise<string> {
    const data = join(this.folder.path, 'data');
    const env = this.environment();
    const { stdout } = await promisify(execFile)(binary(), [...args, '--data', data], { env });
    return stdout;
  }

  async stop(): Promise<void> {
    await rm(this.playing, { force: true });
    await Promise.all([...this.factories.values()].map((factory) => factory.leave()));
    await this.coordinator?.leave();
    await this.front?.stop();
    await this.folder.remove();
  }

  private environment(bin?: string): Record<string, string> {
    const path = process.env.PATH ?? '/usr/bin:/bin';
    return { HOME: this.folder.path, PATH: bin ? `${bin}:${path}` : path };
  }

  private async *events(path: string, signal: AbortSignal): AsyncGenerator<FeedEvent> {
    const headers = { Authorization: `Bearer ${this.admin}`, 'Last-Event-ID': '0' };
    const response = await fetch(this.address + path, { headers, signal });
    if (!response.ok || !response.body) throw new Error(`the stream was refused: ${response.status}`);
    const parser = new SseParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (const message of parser.feed(value)) yield JSON.parse(message.data) as FeedEvent;
    }
  }
}

interface Gate {
  /// A line of a shell script that goes on when the gate is open.
  wait: string;
  open(): Promise<void>;
}

/// The answer of a call that must succeed.
export async function good<T>(
  call: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<NonNullable<T>> {
  const { data, error, response } = await call;
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${JSON.stringify(error)}`);
  return data as NonNullable<T>;
}

export function binary(): string {
  const path = resolve(process.env.GIGA_BIN ?? '../target/debug/giga');
  if (!existsSync(path)) {
    throw new Error(`there is no ${path}: build it with \`cargo build\`, or say with GIGA_BIN where it is`);
  }
  return path;
}

// A factory by hand: holds jobs and says of them what a test wants it to say, through the API that every factory uses.

import type { Client } from 'openapi-fetch';
import type { components, paths } from '../../src/api/schema';
import { good, type World } from './world';

type Schemas = components['schemas'];

export interface Held {
  id: string;
  epoch: number;
}

export class Holder {
  private requests = 0;

  private constructor(
    readonly id: string,
    private readonly api: Client<paths>,
    private readonly url: string,
    private readonly token: string,
  ) {}

  static async enrol(
    world: World,
    id: string,
    about: Partial<Schemas['HeartbeatRequest']> = {},
  ): Promise<Holder> {
    const token = await world.enrol(id);
    // It asks by itself: nothing is sent to it.
    await world.flag(`delivery.${id}`, 'poll');
    const holder = new Holder(id, world.api(token), world.coordinatorUrl, token);
    await holder.heartbeat(about);
    return holder;
  }

  async heartbeat(about: Partial<Schemas['HeartbeatRequest']> = {}): Promise<void> {
    const usual = { capabilities: [], repos: [], seatLimit: 8, load: 0.4 };
    const body: Schemas['HeartbeatRequest'] = {
      factoryId: this.id,
      canClone: true,
      health: 'ok',
      delivery: 'poll',
      ...usual,
      ...about,
    };
    await good(this.api.POST('/api/fleet/factories/heartbeat', { body }));
  }

  /// This job and no other.
  async take(jobId: string): Promise<Held> {
    this.requests += 1;
    const body = { factoryId: this.id, requestId: `${this.id}-${this.requests}`, jobIds: [jobId] };
    const claim = await good(this.api.POST('/api/fleet/claim', { body }));
    if (!('leaseEpoch' in claim)) throw new Error(`${this.id} was not given ${jobId}`);
    const held = { id: jobId, epoch: claim.leaseEpoch };
    await good(
      this.api.PATCH('/api/fleet/jobs/{id}', {
        params: { path: { id: jobId } },
        body: { leaseEpoch: held.epoch, stage: 'building' },
      }),
    );
    return held;
  }

  async log({ id, epoch }: Held, text: string, offset = 0): Promise<void> {
    await this.send(`/api/fleet/jobs/${id}/logs?leaseEpoch=${epoch}&offset=${offset}`, text, 'text/plain');
  }

  async leave({ id, epoch }: Held, name: string, content: string, type = 'text/plain'): Promise<void> {
    const query = new URLSearchParams({ leaseEpoch: String(epoch), name });
    await this.send(`/api/fleet/jobs/${id}/artifacts?${query}`, content, type);
  }

  async report({ id, epoch }: Held, report: Partial<Schemas['RunReport']>): Promise<void> {
    const body = { leaseEpoch: epoch, report: { checks: [], ...report } };
    await good(this.api.POST('/api/fleet/jobs/{id}/report', { params: { path: { id } }, body }));
  }

  async fail({ id, epoch }: Held, detail: string, more: Partial<Schemas['FailRequest']> = {}): Promise<void> {
    const body: Schemas['FailRequest'] = {
      jobId: id,
      leaseEpoch: epoch,
      reason: 'crash',
      retryable: false,
      detail,
      ...more,
    };
    await good(this.api.POST('/api/fleet/fail', { body }));
  }

  private async send(path: string, body: string, type: string): Promise<void> {
    const headers = { Authorization: `Bearer ${this.token}`, 'content-type': type };
    const answer = await fetch(this.url + path, { method: 'POST', headers, body });
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  }
}

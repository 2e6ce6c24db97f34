// A topic worker by hand: the few messages of the gRPC contract that a test needs, over plain HTTP/2.

import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import type { World } from './world';

export interface Assignment {
  jobId: string;
  epoch: number;
  payload: string;
}

/// What becomes of a job: an error, or null when it worked; undefined holds it without a word.
export type Handle = (assignment: Assignment) => { error: string; permanent: boolean } | null | undefined;

export class Worker {
  private constructor(
    private readonly session: ClientHttp2Session,
    private readonly headers: Record<string, string>,
    private readonly id: string,
  ) {}

  static async serve(
    world: World,
    product: string,
    topics: string[],
    id: string,
    handle: Handle,
  ): Promise<Worker> {
    const session = connect(world.coordinatorUrl);
    const headers = { authorization: `Bearer ${world.token}`, 'x-product-id': product };
    const worker = new Worker(session, headers, id);
    const request = [...topics.map((topic) => text(1, topic)), text(2, id), number(3, 100)];
    const stream = worker.call('StreamJobs', request);
    await new Promise<void>((open, fail) => {
      stream.once('response', (headers) => {
        const status = headers['grpc-status'];
        if (status === undefined) open();
        else fail(new Error(`refused with ${status}: ${headers['grpc-message']}`));
      });
      stream.once('error', fail);
    });
    stream.on('error', () => {
      // The coordinator was stopped.
    });
    readMessages(stream, (message) => {
      for (const piece of fields(message).get(1) ?? [])
        void worker.handle(assignment(piece as Buffer), handle);
    });
    return worker;
  }

  leave(): void {
    this.session.destroy();
  }

  private async handle(job: Assignment, handle: Handle): Promise<void> {
    const outcome = handle(job);
    if (outcome === undefined) return;
    const how = outcome
      ? bytes(4, [text(1, outcome.error), number(2, outcome.permanent ? 1 : 0)])
      : bytes(3, []);
    const result = bytes(2, [text(1, job.jobId), number(2, job.epoch), how]);
    const stream = this.call('ReportResult', [text(1, this.id), result]);
    stream.resume();
    await new Promise((done) => stream.once('close', done));
  }

  private call(method: string, message: Buffer[]): ClientHttp2Stream {
    const stream = this.session.request({
      ':method': 'POST',
      ':path': `/gigafactory.v1.Dispatch/${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...this.headers,
    });
    const body = Buffer.concat(message);
    const frame = Buffer.alloc(5);
    frame.writeUInt32BE(body.length, 1);
    stream.end(Buffer.concat([frame, body]));
    return stream;
  }
}

function readMessages(stream: ClientHttp2Stream, receive: (message: Buffer) => void): void {
  let rest = Buffer.alloc(0);
  stream.on('data', (piece: Buffer) => {
    rest = Buffer.concat([rest, piece]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const end = 5 + rest.readUInt32BE(1);
      receive(rest.subarray(5, end));
      rest = rest.subarray(end);
    }
  });
}

function assignment(message: Buffer): Assignment {
  const found = fields(message);
  return {
    jobId: String(found.get(1)?.[0] ?? ''),
    epoch: Number(found.get(3)?.[0] ?? 0),
    payload: String(found.get(6)?.[0] ?? ''),
  };
}

// The wire form of Protocol Buffers: a key that names field and kind, then a varint or so many bytes.

function varint(value: number): Buffer {
  const out: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) out.push((rest % 128) + 128);
  return Buffer.from([...out, rest]);
}

const number = (field: number, value: number) => Buffer.concat([varint(field * 8), varint(value)]);

function bytes(field: number, parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([varint(field * 8 + 2), varint(body.length), body]);
}

const text = (field: number, value: string) => bytes(field, [Buffer.from(value)]);

function fields(message: Buffer): Map<number, (Buffer | number)[]> {
  const found = new Map<number, (Buffer | number)[]>();
  let at = 0;
  const read = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++] ?? 0;
      value += (byte % 128) * scale;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const key = read();
    const value = read();
    const isBytes = key % 8 === 2;
    found.set(Math.floor(key / 8), [
      ...(found.get(Math.floor(key / 8)) ?? []),
      isBytes ? message.subarray(at, at + value) : value,
    ]);
    if (isBytes) at += value;
  }
  return found;
}

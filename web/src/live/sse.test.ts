import { describe, expect, test } from 'vitest';
import { SseParser } from './sse';

const all = (parser: SseParser, pieces: string[]) => pieces.flatMap((piece) => parser.feed(piece));

describe('SseParser', () => {
  test('reads id and data of a message', () => {
    const told = new SseParser().feed('id: 7\nevent: job.shipped\ndata: {"a":1}\n\n');
    expect(told).toEqual([{ id: '7', data: '{"a":1}' }]);
  });

  test('does not care where the network cuts', () => {
    const whole = 'id: 7\r\nevent: x\r\ndata: one\r\ndata: two\r\n\r\n: still here\n\nid: 8\ndata: three\n\n';
    const messages = new SseParser().feed(whole);
    expect(messages.map((message) => message.data)).toEqual(['one\ntwo', 'three']);
    for (let cut = 1; cut < whole.length; cut += 1) {
      expect(all(new SseParser(), [whole.slice(0, cut), whole.slice(cut)]), `cut at ${cut}`).toEqual(
        messages,
      );
    }
    expect(all(new SseParser(), [...whole])).toEqual(messages);
  });

  test('a comment is no message', () => {
    expect(new SseParser().feed(': still here\n\n')).toEqual([]);
  });

  test('an id stays in force until there is another', () => {
    const parser = new SseParser();
    expect(parser.feed('id: 7\ndata: a\n\ndata: b\n\n').map((message) => message.id)).toEqual(['7', '7']);
  });
});

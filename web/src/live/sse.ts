// Parses server-sent events chunk by chunk. Their names are passed over: the data says the type too.

export interface Message {
  id: string | undefined;
  data: string;
}

export class SseParser {
  private rest = '';
  private id: string | undefined;
  private data: string[] = [];

  feed(text: string): Message[] {
    const messages: Message[] = [];
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? '';
    for (const line of lines) {
      const message = this.line(line);
      if (message) messages.push(message);
    }
    return messages;
  }

  private line(line: string): Message | undefined {
    if (line === '') return this.dispatch();
    if (line.startsWith(':')) return undefined;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'id') this.id = value;
    else if (field === 'data') this.data.push(value);
    return undefined;
  }

  private dispatch(): Message | undefined {
    const { id, data } = this;
    this.data = [];
    return data.length > 0 ? { id, data: data.join('\n') } : undefined;
  }
}

// A program that plays the coding engine `claude` on a factory of ours: it speaks its language, edits real files and
// says what it cost, as it is told for the prompt at hand. Everything around it is real.

export interface Play {
  /// What the prompt contains.
  when: string;
  /// What it says while it works.
  says?: string[];
  /// Files as it leaves them.
  files?: Record<string, string>;
  usd?: number;
  tokens?: number;
  /// A file that it waits for after the first sentence.
  waitsFor?: string;
}

/// The script of such a program. `over` is a file that is there as long as anybody wants it to go on.
export function engineThatPlays(plays: Play[], over: string): string {
  return `#!${process.execPath}
const plays = ${JSON.stringify(plays)};
const over = ${JSON.stringify(over)};
const { existsSync, mkdirSync, writeFileSync } = require('node:fs');
const { dirname } = require('node:path');
const args = process.argv.slice(2);
if (args[0] === '--version') { console.log('2.1.210 (Claude Code)'); process.exit(0); }
if (args[0] === 'auth') { console.log('{"loggedIn": true}'); process.exit(0); }
const prompt = args.at(-1) ?? '';
const play = plays.find((play) => prompt.includes(play.when)) ?? { says: ['There is nothing to do.'] };
const session_id = '5b0c9a52-5a0e-4c3f-9f0e-0e6f6b1c2d3e';
const model = 'claude-sonnet-4-6';
const tell = (event) => console.log(JSON.stringify({ ...event, session_id }));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
(async () => {
  tell({ type: 'system', subtype: 'init', cwd: process.cwd(), model, tools: ['Bash', 'Edit', 'Read'] });
  const says = play.says ?? ['I look at the code first.', 'Done.'];
  const each = Math.round((play.tokens ?? 12000) / Math.max(1, says.length));
  for (const [index, text] of says.entries()) {
    const usage = { input_tokens: 6, cache_creation_input_tokens: 0, cache_read_input_tokens: each, output_tokens: 40 };
    tell({ type: 'assistant', message: { id: 'msg_' + index, model, role: 'assistant', content: [{ type: 'text', text }], usage } });
    if (index === 0 && play.waitsFor) while (!existsSync(play.waitsFor) && existsSync(over)) await pause(50);
  }
  for (const [name, text] of Object.entries(play.files ?? {})) {
    mkdirSync(dirname(name), { recursive: true });
    writeFileSync(name, text);
    tell({ type: 'assistant', message: { id: 'edit', model, role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'Edit', input: { file_path: name } }], usage: { input_tokens: 2, output_tokens: 10 } } });
  }
  const usage = { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: play.tokens ?? 12000, output_tokens: 60 };
  tell({ type: 'result', subtype: 'success', is_error: false, num_turns: says.length, result: says.at(-1), total_cost_usd: play.usd ?? 0.05, usage, modelUsage: {} });
  process.exit(0);
})();
`;
}

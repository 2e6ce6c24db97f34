// `giga top` in a real terminal (tmux), drawn as a page so that a browser can take its picture.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { binary, type World } from './world';

const run = promisify(execFile);

export interface TerminalOptions {
  columns: number;
  lines: number;
  /// What is to be read when it is ready.
  shows: string;
}

/// What it shows, with its colours.
export async function gigaTop(world: World, { columns, lines, shows }: TerminalOptions): Promise<string> {
  const socket = `${world.folder.path}/tmux`;
  const tmux = async (...args: string[]) =>
    (await run('tmux', ['-S', socket, '-f', '/dev/null', ...args])).stdout;
  const env = [`HOME=${world.folder.path}`, `GIGA_URL=${world.coordinatorUrl}`, `GIGA_TOKEN=${world.token}`];
  const program = ['env', '-i', 'TERM=xterm-256color', `PATH=${process.env.PATH}`, ...env, binary(), 'top'];
  await tmux('new-session', '-d', '-x', String(columns), '-y', String(lines), '-s', 'top', ...program);
  try {
    await world.eventually(`the terminal shows ${shows}`, async () =>
      (await tmux('capture-pane', '-p', '-t', 'top')).includes(shows),
    );
    return await tmux('capture-pane', '-e', '-p', '-t', 'top');
  } finally {
    await tmux('kill-server');
  }
}

const COLOURS = [
  ['#1e1e1e', '#ff6b6b', '#69db7c', '#ffc078', '#74c0fc', '#e599f7', '#66d9e8', '#dee2e6'],
  ['#868e96', '#ff8787', '#8ce99a', '#ffd8a8', '#a5d8ff', '#eebefa', '#99e9f2', '#ffffff'],
].flat();
const INK = '#ced4da';
const PAPER = '#161616';

/// A page with these lines on it, each cell in its colour.
export function drawn(screen: string): string {
  const lines = screen.trimEnd().split('\n').map(line);
  const style = `margin:0;padding:14px 16px;background:${PAPER};color:${INK};font:14px/1.35 'DejaVu Sans Mono',monospace`;
  return `<!doctype html><body style="margin:0;background:${PAPER}"><pre id="screen" style="${style};display:inline-block">${lines.join('\n')}</pre>`;
}

interface Look {
  fg?: string;
  bg?: string;
  bold?: boolean;
  dim?: boolean;
  turned?: boolean;
}

function line(text: string): string {
  let look: Look = {};
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are what is read
  const parts = text.split(/\u001b\[([0-9;]*)m/);
  return parts
    .map((part, index) => {
      if (index % 2 === 0) return part && `<span style="${css(look)}">${escaped(part)}</span>`;
      look = after(look, part.split(';').map(Number));
      return '';
    })
    .join('');
}

function after(look: Look, codes: number[]): Look {
  let next = { ...look };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 7) next.turned = true;
    else if (code === 39) next.fg = undefined;
    else if (code === 49) next.bg = undefined;
    else if (code >= 30 && code <= 37) next.fg = COLOURS[code - 30];
    else if (code >= 90 && code <= 97) next.fg = COLOURS[code - 82];
    else if (code === 38 || code === 48) {
      next[code === 38 ? 'fg' : 'bg'] = COLOURS[codes[at + 2] ?? 7];
      at += 2;
    }
  }
  return next;
}

function css({ fg = INK, bg = PAPER, bold, dim, turned }: Look): string {
  const [ink, paper] = turned ? [bg, fg] : [fg, bg];
  return `color:${ink};background:${paper};${bold ? 'font-weight:700;' : ''}${dim ? 'opacity:.7' : ''}`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

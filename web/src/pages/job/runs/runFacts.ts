import type { Run } from '../../../api/types';

export function totals(runs: readonly Run[]): { usd: number; tokens: number } {
  return {
    usd: runs.reduce((sum, run) => sum + (run.report.costUsd ?? 0), 0),
    tokens: runs.reduce((sum, run) => sum + (run.report.tokens ?? 0), 0),
  };
}

export function outcomeTone(outcome: string): 'ok' | 'bad' | 'busy' | 'warn' | 'quiet' {
  if (outcome === 'succeeded') return 'ok';
  if (outcome === 'failed') return 'bad';
  if (outcome === 'running') return 'busy';
  return outcome === 'expired' || outcome === 'preempted' ? 'warn' : 'quiet';
}

/// An address that may be followed: https, and nothing hidden in it. A factory told it, so it is anyone's word.
export function webLink(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const parsed = new URL(url);
  return parsed.protocol === 'https:' && parsed.username === '' && parsed.password === ''
    ? parsed.href
    : undefined;
}

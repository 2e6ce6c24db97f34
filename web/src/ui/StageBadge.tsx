import classes from './shared.module.css';

const TONES: Record<string, string> = {
  queued: 'quiet',
  blocked: 'quiet',
  assigned: 'busy',
  building: 'busy',
  review: 'warn',
  testing: 'warn',
  shipped: 'ok',
  failed: 'bad',
  dead_letter: 'bad',
  cancelled: 'quiet',
};

/// How a stage is coloured wherever it stands: the word for it is always beside the colour.
export function stageTone(stage: string): string {
  return TONES[stage] ?? 'quiet';
}

export function stageWord(stage: string): string {
  return stage.replaceAll('_', ' ');
}

export function StageBadge({ stage }: { stage: string }) {
  return (
    <span className={classes.badge} data-tone={stageTone(stage)}>
      {stageWord(stage)}
    </span>
  );
}

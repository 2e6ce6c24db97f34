import { useState } from 'react';
import type { Job } from '../../../api/types';
import { Choice, Hint } from '../../../ui/Basics';
import { Markdown } from '../../../ui/Markdown';
import { Panel } from '../../../ui/Panel';
import { visible } from '../../../ui/visible';
import classes from '../JobView.module.css';

/// What the job was asked to do.
export function PromptPanel({ job }: { job: Job }) {
  const [view, setView] = useState<'read' | 'raw'>('read');
  const raw = view === 'raw';
  const body = job.bodyMd ?? '';
  return (
    <Panel
      title="Prompt"
      aside={
        <Choice
          label="Show the prompt"
          value={view}
          words={{ read: 'Rendered', raw: 'Source' }}
          onChange={setView}
        />
      }
    >
      {body.trim() === '' ? <Hint>The job has no prompt.</Hint> : <Prompt text={body} raw={raw} />}
      {job.personaMd && (
        <details className={classes.persona}>
          <summary>Persona, sent to the engine first</summary>
          <Prompt text={job.personaMd} raw={raw} />
        </details>
      )}
    </Panel>
  );
}

function Prompt({ text, raw }: { text: string; raw: boolean }) {
  if (!raw) return <Markdown text={text} />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
    <pre className={classes.raw} tabIndex={0}>
      {visible(text)}
    </pre>
  );
}

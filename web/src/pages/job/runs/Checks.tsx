import type { Check } from '../../../api/types';
import { Hint } from '../../../ui/Basics';
import { duration } from '../../../ui/format';
import { visible } from '../../../ui/visible';
import { plainText } from '../log/ansi';
import classes from './Runs.module.css';

/// The verify commands of the manifest. The output of a failed one is open.
export function Checks({ checks }: { checks: readonly Check[] | undefined }) {
  if (!checks || checks.length === 0) {
    return <Hint>none</Hint>;
  }
  return (
    <ul className={classes.checks}>
      {checks.map((check, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same command may stand there twice
        <li key={index}>
          <details open={!check.passed}>
            <summary>
              <span className={classes.passed} data-tone={check.passed ? 'ok' : 'bad'}>
                {check.passed ? '✓ passed' : '✗ failed'}
              </span>{' '}
              <code>{visible(check.command)}</code>
              {check.wallMs !== undefined && <span className={classes.took}> {duration(check.wallMs)}</span>}
            </summary>
            <pre className={classes.output}>{readable(check.output) || 'No output'}</pre>
          </details>
        </li>
      ))}
    </ul>
  );
}

function readable(output: string | undefined): string {
  const lines = (output ?? '').trimEnd().split('\n');
  return visible(lines.map((line) => plainText(line.replace(/\r$/, ''))).join('\n'));
}

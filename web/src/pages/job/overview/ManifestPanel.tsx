import { Group } from '@mantine/core';
import { useState } from 'react';
import type { Job } from '../../../api/types';
import { Choice } from '../../../ui/Basics';
import { CopyIcon } from '../../../ui/CommandLine';
import { Panel } from '../../../ui/Panel';
import { visible } from '../../../ui/visible';
import classes from '../JobView.module.css';

/// The manifest with the defaults filled in.
export function ManifestPanel({ job }: { job: Job }) {
  const [view, setView] = useState<'table' | 'raw'>('table');
  if (job.manifest === undefined || job.manifest === null) return null;
  const json = JSON.stringify(job.manifest, null, 2);
  return (
    <Panel
      title="Manifest"
      aside={
        <Group gap="xs">
          <Choice
            label="Show the manifest"
            value={view}
            words={{ table: 'Table', raw: 'JSON' }}
            onChange={setView}
          />
          <CopyIcon
            value={json}
            label="Copy the manifest"
            tip="Copy as JSON (also valid YAML)"
            variant="default"
          />
        </Group>
      }
    >
      {view === 'raw' ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
        <pre className={classes.raw} tabIndex={0}>
          {visible(json)}
        </pre>
      ) : (
        <table className={classes.manifest}>
          <tbody>
            {manifestRows(job.manifest).map(({ key, value }) => (
              <tr key={key}>
                <th scope="row">{key}</th>
                <td>
                  <pre className={classes.value}>{visible(value)}</pre>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

// The manifest as people read it, without empty fields.

interface ManifestRow {
  key: string;
  value: string;
}

export function manifestRows(manifest: unknown): ManifestRow[] {
  if (typeof manifest !== 'object' || manifest === null || Array.isArray(manifest)) return [];
  return Object.entries(manifest)
    .map(([key, value]) => ({ key, value: readable(value) }))
    .filter(({ key, value }) => value !== '' && !HIDDEN.has(key) && USUAL[key] !== value);
}

/// Shown above already.
const HIDDEN = new Set(['name', 'product']);

/// Defaults that are not worth a row.
const USUAL: Record<string, string> = {
  kind: 'agent',
  depsMode: 'all',
  onFailure: 'fail_fast',
  review: 'quorum: 0',
};

function readable(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value.trimEnd();
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return value.map(readable).filter(Boolean).join('\n');
  return Object.entries(value)
    .map(([key, inner]) => [key, readable(inner)] as const)
    .filter(([, text]) => text !== '')
    .map(([key, text]) => `${key}: ${text.replaceAll('\n', ', ')}`)
    .join('\n');
}

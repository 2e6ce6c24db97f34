import { ActionIcon, CopyButton, Group, SegmentedControl, Tooltip } from '@mantine/core';
import { useState } from 'react';
import type { Job } from '../../../api/types';
import { Icon } from '../../../ui/Icon';
import { Panel } from '../../../ui/Panel';
import { visible } from '../../../ui/visible';
import { manifestRows } from './manifestRows';
import classes from './Overview.module.css';

/// What was asked for, with the defaults filled in.
export function ManifestPanel({ job }: { job: Job }) {
  const [raw, setRaw] = useState(false);
  if (job.manifest === undefined || job.manifest === null) return null;
  const json = JSON.stringify(job.manifest, null, 2);
  return (
    <Panel
      title="Manifest"
      aside={
        <Group gap="xs">
          <SegmentedControl
            size="xs"
            aria-label="Show the manifest"
            value={raw ? 'raw' : 'table'}
            onChange={(value) => setRaw(value === 'raw')}
            data={[
              { value: 'table', label: 'Table' },
              { value: 'raw', label: 'JSON' },
            ]}
          />
          <CopyButton value={json}>
            {({ copied, copy }) => (
              <Tooltip label={copied ? 'Copied' : 'Copy as JSON, which is YAML too'}>
                <ActionIcon variant="default" onClick={copy} aria-label="Copy the manifest">
                  <Icon name={copied ? 'check' : 'copy'} />
                </ActionIcon>
              </Tooltip>
            )}
          </CopyButton>
        </Group>
      }
    >
      {raw ? (
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

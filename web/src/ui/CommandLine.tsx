import { ActionIcon, CopyButton, Tooltip } from '@mantine/core';
import { Icon } from './Icon';
import classes from './shared.module.css';

/// A command to copy.
export function CommandLine({ command }: { command: string }) {
  return (
    <span className={classes.command}>
      <code className={classes.code}>{command}</code>
      <CopyButton value={command}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? 'Copied' : 'Copy'}>
            <ActionIcon size="sm" variant="subtle" color="gray" onClick={copy} aria-label={`Copy ${command}`}>
              <Icon name={copied ? 'check' : 'copy'} />
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </span>
  );
}

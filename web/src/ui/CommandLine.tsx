import { ActionIcon, CopyButton, Tooltip } from '@mantine/core';
import classes from './CommandLine.module.css';
import { Icon } from './Icon';

/// The same as a command, to be copied.
export function CommandLine({ command }: { command: string }) {
  return (
    <span className={classes.line}>
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

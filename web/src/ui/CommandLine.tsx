import { ActionIcon, type ActionIconProps, CopyButton, Tooltip } from '@mantine/core';
import { Icon } from './Icon';
import classes from './shared.module.css';

/// A command to copy.
export function CommandLine({ command }: { command: string }) {
  return (
    <span className={classes.command}>
      <code className={classes.code}>{command}</code>
      <CopyIcon value={command} label={`Copy ${command}`} size="sm" />
    </span>
  );
}

interface CopyIconProps extends ActionIconProps {
  value: string;
  label: string;
  tip?: string;
}

export function CopyIcon({ value, label, tip = 'Copy', ...icon }: CopyIconProps) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? 'Copied' : tip}>
          <ActionIcon variant="subtle" color="gray" {...icon} onClick={copy} aria-label={label}>
            <Icon name={copied ? 'check' : 'copy'} size={icon.size === 'xs' ? 13 : 16} />
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}

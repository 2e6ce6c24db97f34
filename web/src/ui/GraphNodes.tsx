import { Handle, type NodeProps, Position, type ReactFlowState, useReactFlow, useStore } from '@xyflow/react';
import { type FocusEvent, memo } from 'react';
import { labelOf, STAGE, toneOf } from '../api/vocabulary';
import { plural } from './format';
import classes from './Graph.module.css';
import { NODE_HEIGHT, NODE_WIDTH } from './GraphLayout';
import type { JobFacts } from './GraphModel';
import { usePlainJobLink } from './links';
import { StageBadge } from './StageBadge';

/// Below this zoom text is unreadable: only position and colour are shown.
const FAR = 0.3;
const isFar = (state: ReactFlowState) => state.transform[2] < FAR;

export const JobNode = memo(function JobNode({ data, positionAbsoluteX, positionAbsoluteY }: NodeProps) {
  const facts = data as JobFacts;
  const far = useStore(isFar);
  const flow = useReactFlow();
  const link = usePlainJobLink(facts.id);
  // Keyboard focus moves the view.
  const follow = (event: FocusEvent<HTMLElement>) => {
    if (!event.currentTarget.matches(':focus-visible')) return;
    const middle = { x: positionAbsoluteX + NODE_WIDTH / 2, y: positionAbsoluteY + NODE_HEIGHT / 2 };
    void flow.setCenter(middle.x, middle.y, { zoom: Math.max(flow.getZoom(), 2 * FAR) });
  };
  const details = detailsOf(facts);
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <a
        href={link.href}
        onClick={link.onClick}
        className={classes.node}
        data-tone={toneOf(STAGE, facts.stage)}
        data-kind={facts.kind}
        data-far={far || undefined}
        data-selected={facts.selected || undefined}
        aria-current={facts.selected ? 'true' : undefined}
        aria-label={far ? `${facts.name}, ${labelOf(STAGE, facts.stage)}` : undefined}
        draggable={false}
        onFocus={follow}
        title={[facts.name, labelOf(STAGE, facts.stage), ...details].join('\n')}
      >
        {!far && <Near facts={facts} details={details} />}
      </a>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </>
  );
});

function detailsOf(facts: JobFacts): string[] {
  const details = [
    facts.kind === 'composite' && 'group',
    facts.kind === 'outside' && 'outside this graph',
    facts.factory && `on ${facts.factory}`,
    facts.attempts > 0 && `${plural(facts.attempts, 'failed attempt')}`,
    facts.failure,
  ];
  return details.filter((text) => typeof text === 'string');
}

function Near({ facts, details }: { facts: JobFacts; details: string[] }) {
  return (
    <>
      <span className={classes.name}>{facts.name}</span>
      <span className={classes.facts}>
        <StageBadge stage={facts.stage} />
        <span className={classes.details}>{details.join(' · ')}</span>
      </span>
      {facts.progress && facts.progress.total > 0 && (
        <span className={classes.progress}>
          <span className={classes.track} aria-hidden="true">
            <span className={classes.filled} style={{ width: `${facts.progress.percent}%` }} />
          </span>
          {facts.progress.shipped}/{facts.progress.total}
        </span>
      )}
    </>
  );
}

export const FrameNode = memo(function FrameNode() {
  return <div className={classes.frame} />;
});

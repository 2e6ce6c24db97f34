import { STAGE, toneOf } from '../api/vocabulary';
import '@xyflow/react/dist/base.css';
import { Button, Group } from '@mantine/core';
import {
  Background,
  BackgroundVariant,
  Controls,
  type Edge,
  MarkerType,
  MiniMap,
  type Node,
  Position,
  ReactFlow,
  type ReactFlowInstance,
} from '@xyflow/react';
import { useMemo, useRef, useState } from 'react';
import type { Dag } from '../api/types';
import classes from './Graph.module.css';
import { layOut, NODE_HEIGHT, NODE_WIDTH, type Positions, place } from './GraphLayout';
import { type GraphLine, type GraphNode, type JobFacts, NodeKeeper } from './GraphModel';
import { FrameNode, JobNode } from './GraphNodes';

const NODE_TYPES = { job: JobNode, frame: FrameNode };
/// Graphs larger than this get a map.
const BIG = 12;
/// Text is readable from this zoom on.
const READABLE = 0.8;
/// Larger graphs are shown whole at first.
const FEW = 80;
const FIT = { maxZoom: 1, padding: 0.05 };
const MARGIN = 24;

// Sizes and handles are known in advance, so nothing has to be measured and lines appear at once.
const POINT = { y: NODE_HEIGHT / 2, width: 1, height: 1 };
const HANDLES = [
  { type: 'target' as const, position: Position.Left, x: 0, ...POINT },
  { type: 'source' as const, position: Position.Right, x: NODE_WIDTH, ...POINT },
];
const drawn = new WeakMap<GraphNode, Node>();

function nodeOf(node: GraphNode): Node {
  const known = drawn.get(node);
  if (known) return known;
  const { width, height } = node;
  const made: Node = {
    ...node,
    measured: { width, height },
    handles: node.type === 'job' ? HANDLES : [],
    zIndex: node.type === 'frame' ? -1 : 0,
  };
  drawn.set(node, made);
  return made;
}

function edgeOf({ id, source, target, kind, done }: GraphLine): Edge {
  const className = [classes.line, classes[kind], done ? classes.done : ''].join(' ');
  const markerEnd =
    kind === 'child' ? undefined : { type: MarkerType.ArrowClosed, color: 'var(--giga-quiet)' };
  return { id, source, target, className, markerEnd, focusable: false, selectable: false };
}

export function GraphCanvas({ dag, selected }: { dag: Dag; selected?: string }) {
  const [keeper] = useState(() => new NodeKeeper());
  const [resets, setResets] = useState(0);
  const positions = usePositions(dag, resets);
  const box = useRef<HTMLElement>(null);
  // As high as the graph needs at first; later jobs do not move the page.
  const [height] = useState(() => boundsOf(positions).height * READABLE + 2 * MARGIN);
  const flow = useRef<ReactFlowInstance | null>(null);
  const model = useMemo(() => keeper.model(dag, positions, selected), [keeper, dag, positions, selected]);
  const nodes = useMemo(() => model.nodes.map(nodeOf), [model]);
  const edges = useMemo(() => model.lines.map(edgeOf), [model]);
  return (
    <section ref={box} className={classes.canvas} style={{ height }} aria-label="Graph of jobs">
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        onInit={(instance) => {
          flow.current = instance;
          if (box.current) void look(instance, box.current, positions, selected ?? dag.rootId);
        }}
        fitViewOptions={FIT}
        minZoom={0.03}
        maxZoom={2}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        onlyRenderVisibleElements={nodes.length > 200}
        // The page scrolls with the wheel; the drawing zooms with Ctrl or the buttons.
        zoomOnScroll={false}
        preventScrolling={false}
      >
        <Background variant={BackgroundVariant.Dots} gap={20} size={1} color="var(--giga-border)" />
        <Controls showInteractive={false} />
        {dag.jobs.length > BIG && (
          <MiniMap
            pannable
            zoomable
            nodeColor={miniColour}
            maskColor="color-mix(in srgb, var(--giga-sunken) 70%, transparent)"
            bgColor="var(--giga-surface)"
            aria-label="Overview of the graph"
          />
        )}
      </ReactFlow>
      <Group className={classes.tools} gap="xs">
        <Button
          size="compact-xs"
          variant="default"
          onClick={() => {
            setResets((n) => n + 1);
            requestAnimationFrame(() => void flow.current?.fitView(FIT));
          }}
        >
          Reset layout
        </Button>
      </Group>
    </section>
  );
}

function miniColour(node: Node): string {
  if (node.type === 'frame') return 'transparent';
  return `var(--giga-${toneOf(STAGE, (node.data as JobFacts).stage)})`;
}

/// The bounding box of all jobs.
function boundsOf(positions: Positions): { x: number; y: number; width: number; height: number } {
  let [left, top, right, bottom] = [0, 0, NODE_WIDTH, NODE_HEIGHT];
  for (const { x, y } of positions.values()) {
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, x + NODE_WIDTH);
    bottom = Math.max(bottom, y + NODE_HEIGHT);
  }
  return { x: left, y: top, width: right - left, height: bottom - top };
}

/// The whole graph if it is readable, or too large to read anyway; otherwise the part around one job.
async function look(
  flow: ReactFlowInstance,
  box: HTMLElement,
  positions: Positions,
  at: string,
): Promise<void> {
  const bounds = boundsOf(positions);
  const zoom = Math.min(box.clientWidth / bounds.width, box.clientHeight / bounds.height);
  const around = positions.get(at);
  if (!around || zoom >= READABLE || positions.size > FEW) {
    await flow.fitView(FIT);
    return;
  }
  const x = MARGIN - bounds.x * READABLE;
  const seen = around.x + NODE_WIDTH < box.clientWidth / READABLE + bounds.x;
  const y = box.clientHeight / 2 - (around.y + NODE_HEIGHT / 2) * READABLE;
  const top = MARGIN - bounds.y * READABLE;
  const fits = bounds.height * READABLE < box.clientHeight;
  await flow.setViewport({
    x: seen ? x : box.clientWidth / 2 - (around.x + NODE_WIDTH / 2) * READABLE,
    y: fits ? top : Math.min(top, y),
    zoom: READABLE,
  });
}

/// Keeps the positions of last time where it can.
function usePositions(dag: Dag, resets: number): Positions {
  const before = useRef<{ root: string; resets: number; places: Positions }>(null);
  return useMemo(() => {
    const last = before.current;
    const same = last !== null && last.root === dag.rootId && last.resets === resets;
    const places = same ? place(dag, last.places) : layOut(dag);
    before.current = { root: dag.rootId, resets, places };
    return places;
  }, [dag, resets]);
}

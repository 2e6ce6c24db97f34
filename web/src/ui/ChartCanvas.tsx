// Lines over time on a canvas. `label` says in words what they show; the caller offers the figures as a table.

import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

type ChartColor = 'busy' | 'bad' | 'quiet' | 'warn' | 'ok';

interface ChartLine {
  name: string;
  color: ChartColor;
  /// A value for each x; null where the line has none.
  values: (number | null)[];
  dashed?: boolean;
  filled?: boolean;
  /// A value holds until the next one.
  stepped?: boolean;
}

interface ChartProps {
  /// The whole chart in a sentence.
  label: string;
  height: number;
  /// Seconds since 1970, rising.
  x: number[];
  lines: ChartLine[];
  range: { from: number; to: number; bottom: number; top: number };
  /// A hatched rectangle.
  band?: { from: number; to: number; bottom: number; top: number; color: ChartColor };
  /// A vertical line, such as now.
  mark?: number;
  value: (y: number) => string;
}

const BOX = { width: '100%', minWidth: 0, overflow: 'hidden', color: 'var(--giga-quiet)' };

/// A canvas cannot use CSS variables, so the colours are read from an element.
function colorsOf(host: HTMLElement): (color: ChartColor | 'border' | 'text') => string {
  const probe = document.createElement('span');
  host.append(probe);
  const names = ['busy', 'bad', 'quiet', 'warn', 'ok', 'border'] as const;
  const found = new Map<string, string>();
  for (const name of names) {
    probe.style.color = `var(--giga-${name})`;
    found.set(name, getComputedStyle(probe).color);
  }
  probe.remove();
  found.set('text', getComputedStyle(host).color);
  return (color) => found.get(color) ?? 'currentColor';
}

function hatch(plot: uPlot, band: NonNullable<ChartProps['band']>, color: string): void {
  const { ctx } = plot;
  const left = plot.valToPos(band.from, 'x', true);
  const right = plot.valToPos(band.to, 'x', true);
  const upper = plot.valToPos(band.top, 'y', true);
  const lower = plot.valToPos(band.bottom, 'y', true);
  if (right <= left || lower <= upper) return;
  ctx.save();
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.rect(left, upper, right - left, lower - upper);
  ctx.clip();
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  const step = 7 * devicePixelRatio;
  ctx.beginPath();
  for (let at = left - (lower - upper); at < right; at += step) {
    ctx.moveTo(at, lower);
    ctx.lineTo(at + (lower - upper), upper);
  }
  ctx.rect(left, upper, right - left, lower - upper);
  ctx.stroke();
  ctx.restore();
}

function upright(plot: uPlot, at: number, color: string): void {
  const { ctx, bbox } = plot;
  const x = plot.valToPos(at, 'x', true);
  ctx.save();
  ctx.setLineDash([]);
  ctx.strokeStyle = color;
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

function optionsOf(props: ChartProps, host: HTMLElement): uPlot.Options {
  const color = colorsOf(host);
  const { range, band, mark } = props;
  const axis = {
    stroke: color('text'),
    grid: { stroke: color('border'), width: 1 },
    ticks: { stroke: color('border'), width: 1 },
    font: '12px system-ui, sans-serif',
  };
  return {
    width: Math.max(50, host.clientWidth),
    height: props.height,
    // Periods are those of UTC, so the axis is too.
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), 'UTC'),
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: true, range: [range.from, range.to] },
      y: { range: [range.bottom, range.top] },
    },
    axes: [
      {
        ...axis,
        values: [
          [86_400, '{D} {MMM}', null, null, null, null, null, null, 1],
          [3_600, '{HH}:{mm}', null, null, null, null, null, null, 1],
          [60, '{HH}:{mm}', null, null, null, null, null, null, 1],
        ],
      },
      { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => props.value(tick)) },
    ],
    series: [
      {},
      ...props.lines.map(
        (line): uPlot.Series => ({
          label: line.name,
          stroke: color(line.color),
          width: 2,
          dash: line.dashed ? [6, 5] : undefined,
          fill: line.filled ? translucent(color(line.color)) : undefined,
          paths: line.stepped ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
          points: { show: false },
        }),
      ),
    ],
    hooks: {
      draw: [
        (plot) => {
          if (mark !== undefined) upright(plot, mark, color('quiet'));
          if (band) hatch(plot, band, color(band.color));
        },
      ],
    },
  };
}

/// `rgb(1, 2, 3)` is what browsers compute.
function translucent(rgb: string): string {
  return rgb.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.15)');
}

export function ChartCanvas(props: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme();
  // biome-ignore lint/correctness/useExhaustiveDependencies: other colours need another drawing
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const plot = new uPlot(
      optionsOf(props, element),
      [props.x, ...props.lines.map((line) => line.values)],
      element,
    );
    const observer = new ResizeObserver(() => {
      const width = Math.max(50, element.clientWidth);
      if (width !== plot.width) plot.setSize({ width, height: props.height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [props, scheme]);
  return <div ref={host} style={BOX} role="img" aria-label={props.label} />;
}

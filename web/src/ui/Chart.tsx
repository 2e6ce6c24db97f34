// A chart, fetched when one is shown: the library is not part of the first screen.

import { lazy, Suspense } from 'react';
import { patiently } from '../app/patience';
import type { ChartProps } from './ChartCanvas';

export type { ChartLine, ChartProps } from './ChartCanvas';

const Canvas = lazy(
  patiently(() => import('./ChartCanvas').then(({ ChartCanvas }) => ({ default: ChartCanvas }))),
);

/// Its place is kept while it is fetched.
export function Chart(props: ChartProps) {
  return (
    <div style={{ height: props.height }}>
      <Suspense>
        <Canvas {...props} />
      </Suspense>
    </div>
  );
}

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { metricsQuery } from '../../api/queries';
import type { FleetMetrics } from '../../api/types';
import { labelOf, STAGE, STAGES, toneOf } from '../../api/vocabulary';
import { count } from '../../ui/format';
import { Icon } from '../../ui/Icon';
import { AnchorLink } from '../../ui/links';
import { Panel, ScrollBox } from '../../ui/Panel';
import { Empty, Loaded } from '../../ui/States';
import classes from './Board.module.css';

export function Board() {
  const metrics = useQuery(metricsQuery());
  return (
    <Panel title="Stages">
      <Loaded query={metrics} what="stages">
        {(data) =>
          data.products.length === 0 ? (
            <Empty title="No jobs yet">
              <AnchorLink to="/new" inherit underline="always">
                Submit the first one
              </AnchorLink>
              , or from a terminal: <code>giga job submit hello.md</code>
            </Empty>
          ) : (
            <Table products={data.products} />
          )
        }
      </Loaded>
    </Panel>
  );
}

function Table({ products }: { products: FleetMetrics['products'] }) {
  const sorted = [...products].sort((a, b) => (a.productId < b.productId ? -1 : 1));
  return (
    <ScrollBox className={classes.box} label="Jobs by product and stage">
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">product</th>
            {STAGES.map((stage) => (
              <th scope="col" key={stage} className={classes.number}>
                {labelOf(STAGE, stage)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.map(({ productId, byStage, budget }) => (
            <tr key={productId}>
              <th scope="row" className={classes.product}>
                <Link to="/jobs" search={{ product: productId }}>
                  {productId}
                </Link>
                {budget?.paused && (
                  <Link to="/budgets/$product" params={{ product: productId }} className={classes.paused}>
                    <Icon name="pause" size={12} /> paused
                  </Link>
                )}
              </th>
              {STAGES.map((stage) => {
                const n = byStage[stage] ?? 0;
                return (
                  <td
                    key={stage}
                    className={classes.number}
                    data-tone={n > 0 ? toneOf(STAGE, stage) : undefined}
                  >
                    {n === 0 ? (
                      <span className={classes.none}>0</span>
                    ) : (
                      <Link
                        to="/jobs"
                        search={{ stage, product: productId }}
                        aria-label={`${n} ${labelOf(STAGE, stage)} of ${productId}`}
                      >
                        {count(n)}
                      </Link>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollBox>
  );
}

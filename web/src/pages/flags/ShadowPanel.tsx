import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { factoriesQuery, shadowQuery } from '../../api/queries';
import type { Divergence, Shadow } from '../../api/types';
import { Ago } from '../../ui/Ago';
import { CommandLine } from '../../ui/CommandLine';
import { count, duration, percent } from '../../ui/format';
import { Fact, Panel, ScrollBox } from '../../ui/Panel';
import { Empty, Loaded } from '../../ui/States';
import classes from './Flags.module.css';
import { divergenceRate } from './takes';

/// Where the dispatcher would have chosen differently, for factories in shadow mode.
export function ShadowPanel() {
  const shadow = useQuery(shadowQuery());
  const factories = useQuery(factoriesQuery()).data?.factories;
  const inShadow = factories?.filter((factory) => factory.delivery === 'shadow').length ?? 0;
  return (
    <Panel title="Shadow divergence">
      <Loaded query={shadow} what="divergence">
        {(data) => (
          <>
            <Figures shadow={data} inShadow={inShadow} />
            {data.recent.length > 0 && <Recent divergences={data.recent} />}
            {data.recent.length === 0 && <None compared={data.agreements} inShadow={inShadow} />}
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function Figures({ shadow, inShadow }: { shadow: Shadow; inShadow: number }) {
  const rate = divergenceRate(shadow.agreements, shadow.divergences);
  return (
    <dl className={classes.figures}>
      <Fact name="factories in shadow mode">{count(inShadow)}</Fact>
      <Fact name="same choice">{count(shadow.agreements)}</Fact>
      <Fact name="different choice" tone={shadow.divergences > 0 ? 'warn' : undefined}>
        {count(shadow.divergences)}
      </Fact>
      <Fact name="divergence">{percent(rate)}</Fact>
    </dl>
  );
}

function None({ compared, inShadow }: { compared: number; inShadow: number }) {
  if (compared > 0) return <Empty title="Every job ran where the dispatcher would have sent it" />;
  if (inShadow > 0) {
    return (
      <Empty title="Nothing to compare yet">
        Choices are compared when a factory in shadow mode claims a job.
      </Empty>
    );
  }
  return (
    <Empty title="No factory is in shadow mode">
      <p>
        In shadow mode polling decides while the dispatcher plans in parallel. This panel shows where the
        dispatcher would have chosen differently, before you rely on it. Try it with one factory:
      </p>
      <CommandLine command="giga flags set delivery.FACTORY shadow" />
    </Empty>
  );
}

function Recent({ divergences }: { divergences: Divergence[] }) {
  return (
    <ScrollBox className={classes.box} label="Latest divergences, newest first">
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">when</th>
            <th scope="col">job</th>
            <th scope="col">dispatcher’s choice</th>
            <th scope="col">claimed by</th>
            <th scope="col">after</th>
          </tr>
        </thead>
        <tbody>
          {divergences.map((divergence) => (
            <tr key={`${divergence.jobId} ${divergence.at}`}>
              <td>
                <Ago at={divergence.at} />
              </td>
              <td>
                <Link to="/jobs/$id" params={{ id: divergence.jobId }} className={classes.id}>
                  {divergence.jobId}
                </Link>
                {divergence.productId && <span className={classes.product}> {divergence.productId}</span>}
              </td>
              <td>{divergence.routedTo}</td>
              <td>{divergence.claimedBy}</td>
              <td>{duration(divergence.lagMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollBox>
  );
}

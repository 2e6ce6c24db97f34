import { Stack, Text, Title } from '@mantine/core';
import { memo, useMemo } from 'react';
import type { Explanation } from '../../api/types';
import { BLOCKER, labelOf } from '../../api/vocabulary';
import { CodeText } from '../../ui/CodeText';
import { plural, sentence } from '../../ui/format';
import { Feasible, Refused } from './ExplainFactories';
import { refusals } from './ExplainGroups';
import classes from './ExplainPanel.module.css';
import { Remedies } from './ExplainRemedies';

/// Why a job waits, or where it would run: in one sentence, then what blocks it, suggested fixes, and every factory.
/// Rendered again only for another answer, however often somebody types beside it.
export const ExplainPanel = memo(function ExplainPanel({ explanation }: { explanation: Explanation }) {
  const feasible = useMemo(() => explanation.factories.filter((verdict) => verdict.feasible), [explanation]);
  const refused = useMemo(() => refusals(explanation.factories), [explanation]);
  const refusedCount = explanation.factories.length - feasible.length;
  return (
    <Stack gap="md">
      <Text fw={600} className={classes.summary}>
        <CodeText text={sentence(explanation.summary)} />
      </Text>
      {explanation.blockers.length > 0 && (
        <section>
          <Title order={3} size="h6" mb={4}>
            Blocked by
          </Title>
          <ul className={classes.blockers}>
            {explanation.blockers.map((blocker) => (
              <li key={`${blocker.code} ${blocker.message}`}>
                <span className={classes.filter}>{labelOf(BLOCKER, blocker.code)}</span>{' '}
                <CodeText text={blocker.message} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {explanation.remedies.length > 0 && (
        <section>
          <Title order={3} size="h6" mb={4}>
            Suggested fixes
          </Title>
          <Remedies remedies={explanation.remedies} />
        </section>
      )}
      {feasible.length > 0 && (
        <section>
          <Title order={3} size="h6" mb={4}>
            {plural(feasible.length, 'eligible factory', 'eligible factories')}, best first
          </Title>
          <Feasible verdicts={feasible} />
        </section>
      )}
      {refused.length > 0 && (
        <section>
          <Title order={3} size="h6" mb={4}>
            {plural(refusedCount, 'ineligible factory', 'ineligible factories')}
          </Title>
          <Refused groups={refused} />
        </section>
      )}
    </Stack>
  );
});

import { Stack, Text, Title } from '@mantine/core';
import { memo, type ReactNode, useMemo } from 'react';
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
        <Section title="Blocked by">
          <ul className={classes.blockers}>
            {explanation.blockers.map((blocker) => (
              <li key={`${blocker.code} ${blocker.message}`}>
                <span className={classes.filter}>{labelOf(BLOCKER, blocker.code)}</span>{' '}
                <CodeText text={blocker.message} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {explanation.remedies.length > 0 && (
        <Section title="Suggested fixes">
          <Remedies remedies={explanation.remedies} />
        </Section>
      )}
      {feasible.length > 0 && (
        <Section title={`${plural(feasible.length, 'eligible factory', 'eligible factories')}, best first`}>
          <Feasible verdicts={feasible} />
        </Section>
      )}
      {refused.length > 0 && (
        <Section title={plural(refusedCount, 'ineligible factory', 'ineligible factories')}>
          <Refused groups={refused} />
        </Section>
      )}
    </Stack>
  );
});

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <Title order={3} size="h6" mb={4}>
        {title}
      </Title>
      {children}
    </section>
  );
}

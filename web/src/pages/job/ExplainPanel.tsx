import { Stack, Text, Title } from '@mantine/core';
import { memo, useMemo } from 'react';
import type { Explanation } from '../../api/types';
import { CodeText } from '../../ui/CodeText';
import { plural } from '../../ui/format';
import { Feasible, Refused } from './ExplainFactories';
import { filterWord, refusals, sentence } from './ExplainGroups';
import classes from './ExplainPanel.module.css';
import { Remedies } from './ExplainRemedies';

/// Why a job waits, or where it would go: in one sentence, then what is in the way, what would help, and every factory.
/// Drawn again only for another answer, however often one types beside it.
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
            In the way
          </Title>
          <ul className={classes.blockers}>
            {explanation.blockers.map((blocker) => (
              <li key={`${blocker.code} ${blocker.message}`}>
                <span className={classes.filter}>{filterWord(blocker.code)}</span>{' '}
                <CodeText text={blocker.message} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {explanation.remedies.length > 0 && (
        <section>
          <Title order={3} size="h6" mb={4}>
            What would help, the smallest change first
          </Title>
          <Remedies remedies={explanation.remedies} />
        </section>
      )}
      {feasible.length > 0 && (
        <section>
          <Title order={3} size="h6" mb={4}>
            {plural(feasible.length, 'factory', 'factories')} could take it, best first
          </Title>
          <Feasible verdicts={feasible} />
        </section>
      )}
      {refused.length > 0 && (
        <section>
          <Title order={3} size="h6" mb={4}>
            {plural(refusedCount, 'factory', 'factories')} could not
          </Title>
          <Refused groups={refused} />
        </section>
      )}
    </Stack>
  );
});

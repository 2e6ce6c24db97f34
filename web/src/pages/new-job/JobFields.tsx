// The fields that most jobs need. The others are under "More fields".

import {
  Autocomplete,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { budgetsQuery, factoriesQuery, productsQuery, whoamiQuery } from '../../api/queries';
import { JOB_KIND, labelOf, PRIORITY, wordIn, wordsOf } from '../../api/vocabulary';
import { plural } from '../../ui/format';
import { BodyEditor } from './BodyEditor';
import { ChoiceInput, ChoicesInput } from './ChoiceInput';
import { CommandsInput } from './CommandsInput';
import type { FieldErrors } from './errors';
import { choicesFor, productChoices, whereIs } from './fleet';
import type { JobForm } from './form';
import classes from './NewJob.module.css';
import type { Drafting } from './useDraft';

export interface FieldsProps {
  form: JobForm;
  set: Drafting['set'];
  errors: FieldErrors;
}

export function JobFields({ form, set, errors }: FieldsProps) {
  const factories = useQuery(factoriesQuery()).data?.factories ?? [];
  const fleet = choicesFor(factories, form.product.trim());
  const runs = form.kind === 'agent';
  return (
    <Stack gap="md">
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        <TextInput
          label="Name"
          withAsterisk
          description="Shown everywhere the job appears"
          placeholder="fix-greeting"
          value={form.name}
          error={errors.name}
          onChange={(event) => set('name', event.currentTarget.value)}
        />
        <Products form={form} set={set} errors={errors} />
      </SimpleGrid>
      <div>
        <SegmentedControl
          size="xs"
          aria-label="Kind of job"
          value={form.kind}
          onChange={(kind) => set('kind', wordIn(JOB_KIND, kind) ?? 'agent')}
          data={wordsOf(JOB_KIND).map((kind) => ({ value: kind, label: labelOf(JOB_KIND, kind) }))}
        />
        {errors.kind && (
          <Text size="sm" c="var(--mantine-color-error)">
            {errors.kind}
          </Text>
        )}
      </div>
      {runs && <Work form={form} set={set} errors={errors} fleet={fleet} />}
      <BodyEditor value={form.body} error={errors.bodyMd} onChange={(body) => set('body', body)} />
      {runs && <CommandsInput value={form.verify} error={errors.verify} onChange={(v) => set('verify', v)} />}
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="md">
        <TextInput
          label="Approvals"
          description="How many approvals it needs"
          placeholder="none"
          inputMode="numeric"
          value={form.quorum}
          error={errors['review.quorum']}
          onChange={(event) => set('quorum', event.currentTarget.value)}
        />
        <Select
          label="Ship"
          description="After approval"
          placeholder={runs ? 'manually' : 'automatically'}
          clearable
          clearButtonProps={{ 'aria-label': 'Clear ship' }}
          value={form.ship || null}
          error={errors.ship}
          onChange={(ship) => set('ship', ship ?? '')}
          data={[
            { value: 'manual', label: 'manually' },
            { value: 'auto', label: 'automatically' },
          ]}
        />
        {runs && (
          <TextInput
            label="Cost limit"
            description="Dollars per run"
            placeholder="2.50"
            leftSection="$"
            inputMode="decimal"
            value={form.budgetUsd}
            error={errors['budget.usd']}
            onChange={(event) => set('budgetUsd', event.currentTarget.value)}
          />
        )}
      </SimpleGrid>
    </Stack>
  );
}

function Products({ form, set, errors }: FieldsProps) {
  const me = useQuery(whoamiQuery()).data;
  const factories = useQuery(factoriesQuery()).data?.factories ?? [];
  const known = [
    ...(useQuery(productsQuery()).data?.products ?? []).map((product) => product.productId),
    ...(useQuery(budgetsQuery()).data?.budgets ?? []).map((budget) => budget.productId),
  ];
  return (
    <Autocomplete
      label="Product"
      description="Whose budget pays, and who can see it"
      placeholder={me?.everyProduct ? 'default' : me?.products[0]}
      data={productChoices(me, known, factories)}
      value={form.product}
      error={errors.product}
      onChange={(product) => set('product', product)}
    />
  );
}

function Work({ form, set, errors, fleet }: FieldsProps & { fleet: ReturnType<typeof choicesFor> }) {
  const repo = fleet.repos.find((choice) => choice.value === form.repo.trim());
  const fetchable =
    fleet.canClone > 0 ? `${plural(fleet.canClone, 'factory', 'factories')} can clone others` : '';
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        <ChoiceInput
          label="Repository"
          description={whereIs(repo) || fetchable || 'A name or a git URL'}
          placeholder="none"
          choices={fleet.repos}
          value={form.repo}
          error={errors.repo}
          onChange={(value) => set('repo', value)}
        />
        <ChoiceInput
          label="Engine"
          description="One, or several in order of preference: claude (opus), codex"
          placeholder="any"
          choices={fleet.engines}
          value={form.engine}
          error={errors.engine ?? errors.model}
          onChange={(value) => set('engine', value)}
        />
        <ChoicesInput
          label="Capabilities"
          description="What a factory must have"
          placeholder={form.capabilities.length === 0 ? 'os:linux' : undefined}
          choices={fleet.capabilities}
          value={form.capabilities}
          error={errors.capabilities}
          onChange={(values) => set('capabilities', values)}
        />
        <Select
          label="Priority"
          description="Rises by one class every half hour"
          placeholder="normal"
          clearable
          clearButtonProps={{ 'aria-label': 'Clear priority' }}
          value={form.priority || null}
          error={errors.priority}
          onChange={(priority) => set('priority', priority ?? '')}
          data={wordsOf(PRIORITY)}
        />
      </SimpleGrid>
      {(form.engine.trim() === 'shell' || form.script !== '' || errors.script) && (
        <Textarea
          label="Script"
          description="Runs in a fresh checkout"
          classNames={{ input: classes.code }}
          placeholder="./fix.sh"
          autosize
          minRows={3}
          maxRows={20}
          spellCheck={false}
          value={form.script}
          error={errors.script ?? (idle(form) ? 'Not sent: only the shell engine runs a script' : undefined)}
          onChange={(event) => set('script', event.currentTarget.value)}
        />
      )}
    </>
  );
}

function idle(form: JobForm): boolean {
  return form.script.trim() !== '' && form.engine.trim() !== 'shell' && form.persona.trim() === '';
}

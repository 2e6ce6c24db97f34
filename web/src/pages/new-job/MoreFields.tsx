import { Autocomplete, Select, SimpleGrid, TagsInput, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { profilesQuery } from '../../api/queries';
import { DEPS_MODE, wordIn, wordsOf } from '../../api/vocabulary';
import { LocalTime } from '../../ui/LocalTime';
import type { Field } from './errors';
import type { JobForm } from './form';
import type { FieldsProps } from './JobFields';
import { JobPicker, JobsPicker } from './JobPicker';
import type { Drafting } from './useDraft';

type TextKey = {
  [K in keyof JobForm]: JobForm[K] extends string ? (string extends JobForm[K] ? K : never) : never;
}[keyof JobForm];

interface MoreFieldsProps extends FieldsProps {
  halfTime: boolean;
  setTime: Drafting['setTime'];
}

export function MoreFields({ form, set, errors, halfTime, setTime }: MoreFieldsProps) {
  const runs = form.kind === 'agent';
  const text = (key: TextKey, field: Field, label: string, description: string, placeholder: string) => (
    <TextInput
      label={label}
      description={description}
      placeholder={placeholder}
      value={form[key]}
      error={errors[field]}
      onChange={(event) => set(key, event.currentTarget.value)}
    />
  );
  const choice = (
    key: TextKey,
    field: Field,
    label: string,
    description: string,
    data: { value: string; label: string }[],
  ) => (
    <Select
      label={label}
      description={description}
      placeholder={data[0]?.label}
      clearable
      clearButtonProps={{ 'aria-label': `Clear ${label.toLowerCase()}` }}
      value={form[key] || null}
      error={errors[field]}
      onChange={(chosen) => set(key, chosen ?? '')}
      data={data}
    />
  );
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
      {runs && <Personas form={form} set={set} errors={errors} />}
      <TagsInput
        label="Reviewers"
        description="Who may approve; anyone if empty"
        value={form.reviewers}
        error={errors['review.reviewers']}
        acceptValueOnBlur
        onChange={(reviewers) => set('reviewers', reviewers)}
      />
      <JobsPicker
        label="Dependencies"
        description="The job starts when these have shipped"
        product={form.product.trim()}
        value={form.deps}
        error={errors.deps}
        onChange={(deps) => set('deps', deps)}
      />
      {runs && (
        <Select
          label="Dependency mode"
          description="Whether all or any of them must ship"
          placeholder="all"
          clearable
          clearButtonProps={{ 'aria-label': 'Clear dependency mode' }}
          value={form.depsMode || null}
          error={errors.depsMode}
          onChange={(mode) => set('depsMode', wordIn(DEPS_MODE, mode) ?? '')}
          data={wordsOf(DEPS_MODE)}
        />
      )}
      <JobPicker
        label="Parent"
        description="The new job becomes a child of this one"
        product={form.product.trim()}
        value={form.parent}
        error={errors.parent}
        onChange={(parent) => set('parent', parent)}
      />
      {!runs && (
        <Select
          label="When a child fails"
          description="What happens to the other children"
          placeholder="cancel the others"
          clearable
          clearButtonProps={{ 'aria-label': 'Clear when a child fails' }}
          value={form.onFailure || null}
          error={errors.onFailure}
          onChange={(policy) => set('onFailure', policy ?? '')}
          data={[
            { value: 'fail_fast', label: 'cancel the others' },
            { value: 'continue', label: 'continue with the others' },
          ]}
        />
      )}
      {runs && (
        <>
          <TagsInput
            label="More repositories"
            description="Beside the repository above, each in its own folder; merged in this order"
            value={form.moreRepos}
            error={errors.repos}
            acceptValueOnBlur
            onChange={(repos) => set('moreRepos', repos)}
          />
          {text(
            'target',
            'target',
            'Target branch',
            "Where the result goes; the repository's own if empty",
            'main',
          )}
          {text('base', 'base', 'Base branch', 'Where the work starts; the target if empty', 'main')}
          {choice(
            'mergeStrategy',
            'merge.strategy',
            'Merge strategy',
            'How the result comes into its branch',
            [
              { value: 'merge', label: 'merge commit' },
              { value: 'squash', label: 'squash' },
              { value: 'rebase', label: 'rebase' },
              { value: 'fast_forward', label: 'fast-forward only' },
            ],
          )}
          {choice('mergeBy', 'merge.by', 'Merged by', 'Who moves the branch', [
            { value: 'push', label: 'the merge queue' },
            { value: 'pull_request', label: 'a pull request' },
          ])}
          {choice('mergeFeedback', 'merge.feedback', 'Pull request feedback', 'What review and CI lead to', [
            { value: 'events', label: 'events' },
            { value: 'changes', label: 'another run' },
          ])}
          {choice('onConflict', 'onConflict', 'On a conflict', 'When it cannot be merged as it is', [
            { value: 'redo', label: 'do it again' },
            { value: 'fail', label: 'fail' },
          ])}
          {text(
            'mergeMessage',
            'merge.message',
            'Merge message',
            'Of the merge commit',
            'Merge {name} ({job})',
          )}
          {text(
            'mergeAuthor',
            'merge.author',
            'Merge author',
            'Of the merge commit',
            'Ana <ana@example.org>',
          )}
          <TagsInput
            label="Also retry on"
            description="Beside failures that are nobody's fault"
            data={['crash', 'verify_failed', 'timeout']}
            value={form.retryOn}
            error={errors['retry.on']}
            acceptValueOnBlur
            onChange={(reasons) => set('retryOn', reasons)}
          />
          <TagsInput
            label="Secrets"
            description="Of the product, by name; NAME=variable or NAME:file puts one elsewhere"
            placeholder="NPM_TOKEN"
            value={form.secrets}
            error={errors.secrets}
            acceptValueOnBlur
            onChange={(secrets) => set('secrets', secrets)}
          />
          {choice('permissions', 'permissions', 'Permissions', 'What the engine may do without asking', [
            { value: 'ask', label: 'read only' },
            { value: 'edit', label: 'change files' },
            { value: 'commands', label: 'run commands, too' },
            { value: 'all', label: 'everything' },
          ])}
          {text('askParkAfter', 'ask.parkAfter', 'Park after', 'How long a question keeps its seat', '10m')}
          {text('askDeadline', 'ask.deadline', 'Answer within', 'How long a question can be answered', '24h')}
          {text('budgetWall', 'budget.wall', 'Time limit', 'A run that takes longer is stopped', '20m')}
          {text('budgetTokens', 'budget.tokens', 'Token limit', 'Tokens per run', '200000')}
          {text('retryMax', 'retry.max', 'Retries', 'After the first attempt', '3')}
          {text(
            'retryBackoff',
            'retry.backoff',
            'Retry backoff',
            'Wait before a retry; doubles each time',
            '30s',
          )}
          {text(
            'concurrencyKey',
            'concurrency.key',
            'Concurrency key',
            'Jobs with the same key share a limit',
            'repo:hello',
          )}
          {text(
            'concurrencyLimit',
            'concurrency.limit',
            'Concurrency limit',
            'How many jobs with this key run at once',
            '1',
          )}
          <LocalTime
            label="Not before"
            description="In your time zone"
            value={form.runAt}
            half={halfTime}
            error={errors.runAt}
            onChange={setTime}
          />
        </>
      )}
    </SimpleGrid>
  );
}

function Personas({ form, set, errors }: FieldsProps) {
  const profiles = useQuery(profilesQuery(form.product.trim() || undefined)).data?.profiles ?? [];
  const [name = ''] = form.persona.trim().split('@');
  const chosen = profiles.find((profile) => profile.name === name);
  return (
    <Autocomplete
      label="Profile"
      description={chosen ? `Provides ${provided(chosen.defaults)}` : 'Provides defaults for empty fields'}
      placeholder={profiles[0] ? `${profiles[0].name}@${profiles[0].version}` : 'coder@1'}
      data={profiles.map((profile) => `${profile.name}@${profile.version}`)}
      value={form.persona}
      error={errors.persona}
      onChange={(persona) => set('persona', persona)}
    />
  );
}

/// What a profile provides besides its persona.
function provided(defaults: object): string {
  const keys = Object.keys(defaults);
  return keys.length > 0 ? `defaults for ${keys.join(', ')}` : 'a persona and no defaults';
}

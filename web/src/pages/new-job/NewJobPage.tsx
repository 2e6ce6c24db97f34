import { Anchor, Button, Group, Stack, Tabs, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { jobQuery, whoamiQuery } from '../../api/queries';
import { Hint, PageTitle, SmallButton } from '../../ui/Basics';
import { useConfirm } from '../../ui/Confirm';
import { Note } from '../../ui/Note';
import { Panel } from '../../ui/Panel';
import { Loaded } from '../../ui/States';
import { visible } from '../../ui/visible';
import { DraftChoice } from './DraftChoice';
import { DryRun } from './DryRun';
import type { DraftPlace } from './draft';
import { UNDER_MORE } from './errors';
import { EMPTY_FORM, type JobForm } from './form';
import { JobFields } from './JobFields';
import { ManifestEditor } from './ManifestEditor';
import { MoreFields } from './MoreFields';
import classes from './NewJob.module.css';
import { formOf } from './prefill';
import { formOfText } from './read';
import { useDraft } from './useDraft';
import { usePlan } from './usePlan';

const route = getRouteApi('/new');

const DROP_EDITS = {
  title: 'Back to the form?',
  text: 'The form cannot express the edited manifest. Your edits are discarded, and the form is as you left it.',
  yes: 'Discard edits',
  danger: true,
};

export function NewJobPage() {
  const { from, product } = route.useSearch();
  const whoami = useQuery(whoamiQuery());
  return (
    <Stack gap="md">
      <PageTitle>New job</PageTitle>
      <Loaded query={whoami} what="your token">
        {(me) => {
          const only = me.everyProduct || me.products.length !== 1 ? undefined : me.products[0];
          const start = { ...EMPTY_FORM, product: product ?? only ?? '' };
          const place = { owner: me.tokenId, from };
          return from ? (
            <FromJob key={`${me.tokenId} ${from}`} from={from} place={place} />
          ) : (
            <DraftChoice key={`${me.tokenId} ${product ?? ''}`} place={place} product={product}>
              <Drafted place={place} start={start} />
            </DraftChoice>
          );
        }}
      </Loaded>
    </Stack>
  );
}

function FromJob({ from, place }: { from: string; place: DraftPlace }) {
  const job = useQuery(jobQuery(from));
  return (
    <Loaded query={job} what="job to start from">
      {(found) => (
        <>
          <Text size="sm">
            Based on{' '}
            <Anchor component={Link} to={`/jobs/${found.id}`} size="sm" underline="always">
              {visible(found.name)}
            </Anchor>
            , which does not change.
          </Text>
          <Drafted place={place} start={formOf(found, Date.now())} />
        </>
      )}
    </Loaded>
  );
}

function Drafted({ place, start }: { place: DraftPlace; start: JobForm }) {
  const drafting = useDraft(place, start);
  const plan = usePlan(drafting.draft);
  const ask = useConfirm();
  const [tab, setTab] = useState<string | null>(drafting.draft.text === null ? 'form' : 'manifest');
  const { draft } = drafting;
  const edited = draft.text !== null;
  const startOver = async () => {
    const yes = await ask({
      title: 'Start over?',
      text: 'What you typed here is discarded.',
      yes: 'Start over',
      danger: true,
    });
    if (!yes) return;
    drafting.startOver();
    setTab('form');
  };
  const choose = (next: string | null) => {
    const read = next === 'form' && draft.text !== null ? formOfText(draft.text, draft.form) : undefined;
    if (read) drafting.setForm(read);
    setTab(next);
  };
  const back = async () => {
    const readable = draft.text !== null && formOfText(draft.text, draft.form) !== undefined;
    if (!readable && !(await ask(DROP_EDITS))) return;
    if (!readable) drafting.setText(null);
    choose('form');
  };
  return (
    <div className={classes.columns}>
      <Panel
        title="Job"
        aside={
          <Group gap="xs">
            <Hint size="xs">
              {drafting.kept
                ? drafting.dirty && 'Draft saved in this tab'
                : 'This browser cannot save drafts'}
            </Hint>
            <Button
              size="compact-xs"
              variant="default"
              disabled={!drafting.dirty}
              onClick={() => void startOver()}
            >
              Start over
            </Button>
          </Group>
        }
      >
        <Tabs value={tab} onChange={choose} keepMounted={false}>
          <Tabs.List mb="md">
            <Tabs.Tab value="form">Form</Tabs.Tab>
            <Tabs.Tab value="manifest">Manifest</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="form">
            {edited ? (
              <EditedManifest back={() => void back()} edit={() => setTab('manifest')} />
            ) : (
              <Fields drafting={drafting} plan={plan} />
            )}
          </Tabs.Panel>
          <Tabs.Panel value="manifest">
            <ManifestEditor draft={draft} plan={plan} setText={drafting.setText} back={() => void back()} />
          </Tabs.Panel>
        </Tabs>
      </Panel>
      <div className={classes.side}>
        <DryRun drafting={drafting} plan={plan} />
      </div>
    </div>
  );
}

function Fields({
  drafting,
  plan,
}: {
  drafting: ReturnType<typeof useDraft>;
  plan: ReturnType<typeof usePlan>;
}) {
  const { form } = drafting.draft;
  const [more, setMore] = useState(false);
  const wrongBelow = drafting.halfTime || UNDER_MORE.some((field) => plan.fields[field] !== undefined);
  const opened = more || wrongBelow;
  return (
    <Stack gap="md">
      <JobFields form={form} set={drafting.set} errors={plan.fields} />
      <div>
        <Button
          size="compact-sm"
          variant="subtle"
          aria-expanded={opened}
          disabled={wrongBelow}
          onClick={() => setMore(!more)}
        >
          {opened ? 'Fewer fields' : 'More fields'}
        </Button>
      </div>
      {opened && (
        <MoreFields
          form={form}
          set={drafting.set}
          errors={plan.fields}
          halfTime={drafting.halfTime}
          setTime={drafting.setTime}
        />
      )}
    </Stack>
  );
}

function EditedManifest({ back, edit }: { back: () => void; edit: () => void }) {
  return (
    <Note tone="busy" title="The manifest was edited">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          It contains something that the form cannot express. The manifest is submitted, not the form.
        </Text>
        <Group gap="xs">
          <Button size="xs" onClick={edit}>
            Edit the manifest
          </Button>
          <SmallButton onClick={back}>Back to the form</SmallButton>
        </Group>
      </Stack>
    </Note>
  );
}

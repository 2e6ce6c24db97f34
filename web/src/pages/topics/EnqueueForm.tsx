import { Button, Group, NativeSelect, Stack, Textarea, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { answer, api, inProduct, newKey } from '../../api/client';
import { keys } from '../../api/queries';
import { PRIORITIES } from '../../api/types';
import { useMay } from '../../session/useSession';
import { CommandLine } from '../../ui/CommandLine';
import { tellDone } from '../../ui/Confirm';
import { HALF_TYPED, LocalTime } from '../../ui/LocalTime';
import { Panel } from '../../ui/Panel';
import { ProblemAlert } from '../../ui/States';
import { enqueueBody, enqueueCommand, keyError, type NewJob, payloadError, runAtOf } from './payload';

const FRESH: NewJob = { payload: '{}', priority: 'normal', runAt: '', key: '' };

/// A job for the topic, by hand.
export function EnqueueForm({ product, topic }: { product: string; topic: string }) {
  const may = useMay('submitter');
  const client = useQueryClient();
  const [job, setJob] = useState(FRESH);
  const [half, setHalf] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  // The same until the form changes: an answer that was lost can be asked for again.
  const [spareKey, setSpareKey] = useState(newKey);
  if (!may) return null;
  const errors = {
    payload: payloadError(job.payload),
    runAt: half ? HALF_TYPED : runAtOf(job.runAt).error,
    key: keyError(job.key),
  };
  const wrong = Object.values(errors).some((error) => error !== undefined);
  const change = (part: Partial<NewJob>) => {
    setJob((now) => ({ ...now, ...part }));
    setSpareKey(newKey());
    setProblem(undefined);
  };
  const enqueue = async (event: FormEvent) => {
    event.preventDefault();
    if (wrong || busy) return;
    setBusy(true);
    try {
      const { jobs } = await answer(
        api.POST('/api/fleet/topics/{name}/jobs', {
          params: { path: { name: topic }, header: inProduct(product) },
          body: {},
          bodySerializer: () => enqueueBody(job, spareKey),
        }),
      );
      const [made] = jobs;
      tellDone(
        made?.existing ? `The key was seen before: it is job ${made.id}` : `Job ${made?.id ?? ''} was added`,
      );
      // What was typed since then is the next job.
      setJob((now) => (now.key === job.key ? { ...now, key: '' } : now));
      setSpareKey((now) => (now === spareKey ? newKey() : now));
      setProblem(undefined);
      await client.invalidateQueries({ queryKey: keys.topics });
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Panel title="Add a job">
      <form onSubmit={(event) => void enqueue(event)} noValidate>
        <Stack gap="sm">
          <Textarea
            label="Payload"
            description="Any JSON, at most 256 KiB; its bytes reach the handler as they stand here"
            value={job.payload}
            error={errors.payload}
            autosize
            minRows={3}
            maxRows={16}
            spellCheck={false}
            styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
            onChange={(event) => change({ payload: event.currentTarget.value })}
          />
          <Group align="flex-start" gap="sm">
            <NativeSelect
              label="Priority"
              description="Who goes first"
              data={[...PRIORITIES]}
              value={job.priority}
              onChange={(event) => change({ priority: event.currentTarget.value })}
            />
            <LocalTime
              label="Not before"
              description="Your local time; empty is now"
              value={job.runAt}
              half={half}
              error={errors.runAt}
              onChange={(runAt, isHalf) => {
                setHalf(isHalf);
                change({ runAt });
              }}
            />
            <TextInput
              label="Key"
              description="The same key again is the same job"
              value={job.key}
              error={errors.key}
              autoComplete="off"
              onChange={(event) => change({ key: event.currentTarget.value })}
            />
          </Group>
          {problem !== undefined && <ProblemAlert error={problem} />}
          <CommandLine command={enqueueCommand(product, topic, job)} />
          <div>
            <Button type="submit" loading={busy} disabled={wrong}>
              Add the job
            </Button>
          </div>
        </Stack>
      </form>
    </Panel>
  );
}

import { Button, Group, NativeSelect, Stack, Textarea, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { answer, api, inProduct, newKey } from '../../api/client';
import { keys } from '../../api/queries';
import { PRIORITY, wordIn, wordsOf } from '../../api/vocabulary';
import { useMay } from '../../session/useSession';
import { CommandLine } from '../../ui/CommandLine';
import { notifyDone } from '../../ui/Confirm';
import { HALF_TYPED, LocalTime } from '../../ui/LocalTime';
import { Panel } from '../../ui/Panel';
import { ProblemAlert } from '../../ui/States';
import { enqueueBody, enqueueCommand, keyError, type NewJob, payloadError, runAtOf } from './payload';

const FRESH: NewJob = { payload: '{}', priority: 'normal', runAt: '', key: '' };

/// Adds a job to the topic.
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
      notifyDone(
        made?.existing ? `A job with this key exists: ${made.id}` : `Job ${made?.id ?? ''} was added`,
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
            description="Any JSON up to 256 KiB; the worker gets exactly these bytes"
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
              description="Higher goes first"
              data={wordsOf(PRIORITY)}
              value={job.priority}
              onChange={(event) =>
                change({ priority: wordIn(PRIORITY, event.currentTarget.value) ?? 'normal' })
              }
            />
            <LocalTime
              label="Not before"
              description="Your local time; empty means now"
              value={job.runAt}
              half={half}
              error={errors.runAt}
              onChange={(runAt, isHalf) => {
                setHalf(isHalf);
                change({ runAt });
              }}
            />
            <TextInput
              label="Idempotency key"
              description="A second job with the same key is not added"
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
              Add job
            </Button>
          </div>
        </Stack>
      </form>
    </Panel>
  );
}

import { Button, Group, Stack, Textarea } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { answer, api } from '../../../api/client';
import { conversationQuery, keys } from '../../../api/queries';
import type { Job, Message, Question } from '../../../api/types';
import { QUESTION_STATE, STAGE } from '../../../api/vocabulary';
import { useMay } from '../../../session/useSession';
import { Ago } from '../../../ui/Ago';
import { Hint } from '../../../ui/Basics';
import { CommandLine } from '../../../ui/CommandLine';
import { notifyDone } from '../../../ui/Confirm';
import { Panel } from '../../../ui/Panel';
import { ProblemAlert } from '../../../ui/States';
import { visible } from '../../../ui/visible';
import { answerCommand, sayCommand } from './commands';
import classes from './Talk.module.css';

/// What the job asks, what was said so far, and a box to say something.
export function TalkPanel({ job }: { job: Job }) {
  const may = useMay('submitter');
  const said = useQuery({ ...conversationQuery(job.id), enabled: job.hasConversation });
  const open = job.openQuestions ?? [];
  const closed = (said.data?.questions ?? []).filter((question) => question.state !== 'open');
  const messages = said.data?.messages ?? [];
  const over = ['done', 'dead'].includes(STAGE[job.stage]?.phase);
  const nothing = open.length === 0 && closed.length === 0 && messages.length === 0;
  if (nothing && (over || !may || job.kind === 'composite')) return null;
  return (
    <Panel title={open.length > 0 ? 'Needs input' : 'Conversation'}>
      <Stack gap="md">
        {open.map((question) => (
          <OpenQuestion key={question.number} job={job} question={question} may={may} />
        ))}
        {(closed.length > 0 || messages.length > 0) && <Said questions={closed} messages={messages} />}
        {may && !over && job.kind !== 'composite' && <SayBox job={job} />}
      </Stack>
    </Panel>
  );
}

function useSend(job: Job) {
  const client = useQueryClient();
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const send = async (call: Promise<unknown>, done: string): Promise<boolean> => {
    setBusy(true);
    setProblem(undefined);
    try {
      await call;
      notifyDone(done);
      return true;
    } catch (error) {
      setProblem(error);
      return false;
    } finally {
      setBusy(false);
      void client.invalidateQueries({ queryKey: keys.job(job.id) });
    }
  };
  return { send, problem, busy };
}

interface OpenQuestionProps {
  job: Job;
  question: Question;
  may: boolean;
}

function OpenQuestion({ job, question, may }: OpenQuestionProps) {
  const [text, setText] = useState('');
  const { send, problem, busy } = useSend(job);
  const options = question.options ?? [];
  const give = async (given: string) => {
    const call = answer(
      api.POST('/api/fleet/jobs/{id}/answer', {
        params: { path: { id: job.id } },
        body: { question: question.number, answer: given },
      }),
    );
    if (await send(call, `Question ${question.number} of ${visible(job.name)} is answered`)) setText('');
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) void give(text.trim());
  };
  return (
    <form onSubmit={submit} aria-label={`Question ${question.number}`} className={classes.question}>
      <p className={classes.text}>{visible(question.text)}</p>
      <Hint>
        asked <Ago at={question.askedAt} />;{' '}
        {question.default != null ? (
          <>
            <code>{visible(question.default)}</code> is taken <Ago at={question.deadline} />
          </>
        ) : (
          <>
            the job fails <Ago at={question.deadline} /> without an answer
          </>
        )}
      </Hint>
      {!may && <Hint>Answering requires the submitter role; your token is read-only.</Hint>}
      {may && (
        <Stack gap="xs">
          {options.length > 0 && (
            <Group gap="xs">
              {options.map((option) => (
                <Button
                  key={option}
                  size="xs"
                  variant="default"
                  disabled={busy}
                  onClick={() => void give(option)}
                >
                  {visible(option)}
                </Button>
              ))}
            </Group>
          )}
          {question.kind !== 'permission' && (
            <Group gap="xs" align="end">
              <Textarea
                className={classes.box}
                size="xs"
                label={options.length > 0 ? 'Or in other words' : 'Answer'}
                autosize
                minRows={1}
                maxRows={8}
                maxLength={2000}
                value={text}
                onChange={(event) => setText(event.currentTarget.value)}
              />
              <Button type="submit" size="xs" loading={busy} disabled={!text.trim()}>
                Answer
              </Button>
            </Group>
          )}
          {problem !== undefined && <ProblemAlert error={problem} />}
          <CommandLine command={answerCommand(job, question, text || (options[0] ?? ''))} />
        </Stack>
      )}
    </form>
  );
}

function Said({ questions, messages }: { questions: Question[]; messages: Message[] }) {
  const entries = [
    ...questions.map((question) => ({
      at: question.closedAt ?? question.askedAt,
      question,
      message: undefined,
    })),
    ...messages.map((message) => ({ at: message.at, question: undefined, message })),
  ].sort((one, other) => one.at.localeCompare(other.at));
  return (
    <ol className={classes.said}>
      {entries.map(({ at, question, message }) => (
        <li key={`${at} ${question?.number ?? message?.seq}`}>
          {question && (
            <>
              <span className={classes.text}>{visible(question.text)}</span>{' '}
              <b>
                {question.answer != null ? visible(question.answer) : QUESTION_STATE[question.state]?.label}
              </b>
              <Hint>
                {question.answeredBy ? visible(question.answeredBy) : QUESTION_STATE[question.state]?.label},{' '}
                <Ago at={at} />
              </Hint>
            </>
          )}
          {message && (
            <>
              <span className={classes.text}>{visible(message.text)}</span>
              <Hint>
                {visible(message.by)}, <Ago at={at} />,{' '}
                {message.delivered ? `read by run ${message.delivered.leaseEpoch}` : 'not read yet'}
              </Hint>
            </>
          )}
        </li>
      ))}
    </ol>
  );
}

function SayBox({ job }: { job: Job }) {
  const [text, setText] = useState('');
  const { send, problem, busy } = useSend(job);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!text.trim()) return;
    const call = answer(
      api.POST('/api/fleet/jobs/{id}/messages', {
        params: { path: { id: job.id } },
        body: { text: text.trim(), requestId: crypto.randomUUID() },
      }),
    );
    if (await send(call, `${visible(job.name)} gets your message`)) setText('');
  };
  return (
    <form onSubmit={(event) => void submit(event)} aria-label="Say something">
      <Stack gap="xs">
        <Group gap="xs" align="end">
          <Textarea
            className={classes.box}
            size="xs"
            label="Say something to the engine"
            description={
              job.lease
                ? 'It is read at the next turn, at the latest by the next run.'
                : 'It is read when the job runs next.'
            }
            autosize
            minRows={1}
            maxRows={8}
            maxLength={4000}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <Button type="submit" size="xs" variant="default" loading={busy} disabled={!text.trim()}>
            Send
          </Button>
        </Group>
        {problem !== undefined && <ProblemAlert error={problem} />}
        <CommandLine command={sayCommand(job, text)} />
      </Stack>
    </form>
  );
}

// The form is sent as JSON, an edited manifest as text.

import { answer, api } from '../../api/client';
import type { components } from '../../api/schema';
import type { Job, PlanAnswer } from '../../api/types';
import type { Draft } from './draft';
import { emit } from './emit';
import { type JobForm, toManifest } from './form';

type Sent = components['schemas']['SubmitRequest'];

/// A dry run needs a name, even before the user has typed one.
const UNNAMED = 'unnamed';

interface Content {
  form: JobForm;
  text: string | null;
}

/// The manifest as a file.
export function manifestText({ form, text }: Content): string {
  return text ?? emit(toManifest(form), form.body);
}

function asJson(form: JobForm): Sent {
  // To the schema a manifest is only an object; the coordinator validates it.
  return { manifest: toManifest(form) as Sent['manifest'], bodyMd: form.body };
}

const asText = {
  headers: { 'Content-Type': 'text/markdown' },
  bodySerializer: (body: unknown) => String(body),
};

export function dryRun({ form, text }: Content, signal: AbortSignal): Promise<PlanAnswer> {
  if (text !== null) return answer(api.POST('/api/fleet/plan', { ...asText, body: text, signal }));
  const named = form.name.trim() === '' ? { ...form, name: UNNAMED } : form;
  // The prompt does not affect where it would run.
  const body = { ...asJson(named), bodyMd: '' };
  return answer(api.POST('/api/fleet/plan', { body, signal }));
}

export async function submit({ form, text, key }: Draft): Promise<Job> {
  if (form.parent) {
    const child = text === null ? { ...asJson(form) } : { markdown: text };
    const made = await answer(
      api.POST('/api/fleet/jobs/{id}/children', {
        params: { path: { id: form.parent.id } },
        body: { children: [{ ...child, idempotencyKey: key }] },
      }),
    );
    const [first] = made.jobs;
    if (!first) throw new Error('the coordinator created the job but did not return it');
    return first.job;
  }
  const params = { header: { 'idempotency-key': key } };
  const call =
    text === null
      ? api.POST('/api/fleet/jobs', { params, body: asJson(form) })
      : api.POST('/api/fleet/jobs', { params, ...asText, body: text });
  return (await answer(call)).job;
}

import { Button, Group, Modal, Table, Text, VisuallyHidden } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../../api/client';
import { artifactsQuery, artifactTextQuery, keys } from '../../../api/queries';
import type { Artifact, Job } from '../../../api/types';
import { Ago } from '../../../ui/Ago';
import { CommandLine } from '../../../ui/CommandLine';
import { ActionButton, notifyProblem } from '../../../ui/Confirm';
import { bytes } from '../../../ui/format';
import { Icon } from '../../../ui/Icon';
import { AnchorLink } from '../../../ui/links';
import { Empty, Loaded } from '../../../ui/States';
import { visible } from '../../../ui/visible';
import classes from '../JobView.module.css';

/// The files that the runs of a job uploaded.
export function FilesPanel({ job }: { job: Job }) {
  const query = useQuery(artifactsQuery(job.id));
  const [previewed, setPreviewed] = useState<Artifact>();
  return (
    <>
      <Loaded query={query} what="files">
        {({ artifacts }) =>
          artifacts.length === 0 ? (
            <Empty title="No files">
              Runs upload their changes here, and any files they add with their job token.
            </Empty>
          ) : (
            <FileTable job={job} files={artifacts} preview={setPreviewed} />
          )
        }
      </Loaded>
      <Modal
        opened={previewed !== undefined}
        onClose={() => setPreviewed(undefined)}
        title={visible(previewed?.name ?? '')}
        size="xl"
      >
        {previewed && <Preview file={previewed} />}
      </Modal>
    </>
  );
}

function FileTable({
  job,
  files,
  preview,
}: {
  job: Job;
  files: Artifact[];
  preview: (file: Artifact) => void;
}) {
  const newestFirst = [...files].sort((a, b) => b.leaseEpoch - a.leaseEpoch || a.name.localeCompare(b.name));
  return (
    <>
      <Group justify="flex-end" mb="xs">
        <CommandLine command={`giga artifact list ${job.id}`} />
      </Group>
      <Table.ScrollContainer minWidth={640} type="native" className={classes.scroll}>
        <Table verticalSpacing={6} className={classes.files}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Name</Table.Th>
              <Table.Th scope="col">Size</Table.Th>
              <Table.Th scope="col">Type</Table.Th>
              <Table.Th scope="col">Run</Table.Th>
              <Table.Th scope="col">Created</Table.Th>
              <Table.Th scope="col">
                <VisuallyHidden>Actions</VisuallyHidden>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {newestFirst.map((file) => (
              <Table.Tr key={file.id}>
                <Table.Td className={classes.fileName}>{visible(file.name)}</Table.Td>
                <Table.Td>{bytes(file.size)}</Table.Td>
                <Table.Td>{visible(file.mediaType)}</Table.Td>
                <Table.Td>
                  <AnchorLink
                    size="sm"
                    to="/jobs/$id"
                    params={{ id: job.id }}
                    search={{ tab: 'log', epoch: file.leaseEpoch }}
                    aria-label={`Log of run ${file.leaseEpoch}`}
                  >
                    {file.leaseEpoch}
                  </AnchorLink>
                </Table.Td>
                <Table.Td>
                  <Ago at={file.createdAt} />
                </Table.Td>
                <Table.Td>
                  <FileActions job={job} file={file} preview={preview} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </>
  );
}

function FileActions({
  job,
  file,
  preview,
}: {
  job: Job;
  file: Artifact;
  preview: (file: Artifact) => void;
}) {
  const client = useQueryClient();
  const name = visible(file.name);
  return (
    <Group gap={6} wrap="nowrap" justify="flex-end">
      {hasPreview(file) && (
        <Button
          size="compact-xs"
          variant="default"
          onClick={() => preview(file)}
          aria-label={`Preview ${name}`}
        >
          Preview
        </Button>
      )}
      <Button
        size="compact-xs"
        variant="default"
        leftSection={<Icon name="down" size={12} />}
        onClick={() => void download(file)}
        aria-label={`Download ${name}`}
      >
        Download
      </Button>
      <ActionButton
        size="compact-xs"
        label="Delete"
        aria-label={`Delete ${name}`}
        role="operator"
        command={`giga artifact rm ${file.id}`}
        confirm={{
          title: `Delete ${name}?`,
          text: `Uploaded by run ${file.leaseEpoch}, ${bytes(file.size)}. This cannot be undone.`,
          yes: 'Delete',
          danger: true,
        }}
        done={`${name} was deleted`}
        run={async () => {
          await answer(api.DELETE('/api/fleet/artifacts/{id}', { params: { path: { id: file.id } } }));
          await client.invalidateQueries({ queryKey: keys.job(job.id) });
        }}
      />
    </Group>
  );
}

/// Through a link that is signed for a while: the token is never part of an address.
async function download(file: Artifact): Promise<void> {
  try {
    const { url } = await answer(
      api.GET('/api/fleet/artifacts/{id}/link', { params: { path: { id: file.id } } }),
    );
    const target = new URL(url, location.href);
    if (target.protocol !== 'https:' && target.protocol !== 'http:')
      throw new Error(`not a link to a file: ${url}`);
    const link = document.createElement('a');
    // Behind a proxy the coordinator may not know its own address, so its files are fetched from this origin.
    const own = target.pathname === `/api/fleet/artifacts/${file.id}/content`;
    link.href = own ? target.pathname + target.search : target.href;
    link.target = '_blank';
    link.rel = 'noopener noreferrer';
    link.click();
  } catch (error) {
    notifyProblem('Could not download the file', error);
  }
}

function Preview({ file }: { file: Artifact }) {
  const query = useQuery(artifactTextQuery(file.id));
  return (
    <>
      <Loaded query={query} what="file">
        {(text) => (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
          <pre className={classes.preview} tabIndex={0}>
            {text === '' ? 'Empty file' : visible(text)}
          </pre>
        )}
      </Loaded>
      <Text size="xs" c="dimmed" mt="xs" component="div">
        <CommandLine command={`giga artifact get ${file.id}`} />
      </Text>
    </>
  );
}

/// Larger files are downloaded.
const SMALL = 256 * 1024;

const TEXTS = [
  'application/json',
  'application/x-ndjson',
  'application/xml',
  'application/yaml',
  'application/toml',
];

/// Only text, and only as text: what a job uploaded is never rendered, whatever type it claims.
export function hasPreview(file: Pick<Artifact, 'mediaType' | 'size'>): boolean {
  const type = file.mediaType.split(';')[0]?.trim().toLowerCase() ?? '';
  return file.size <= SMALL && (type.startsWith('text/') || TEXTS.includes(type) || type.endsWith('+json'));
}

import { Button, Switch, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useId, useMemo, useState } from 'react';
import { Choice } from '../../../ui/Basics';
import { plural } from '../../../ui/format';
import { Empty } from '../../../ui/States';
import { visible } from '../../../ui/visible';
import { Counts, DiffFilePanel, FileCounts, fileTitle } from './DiffFilePanel';
import classes from './DiffView.module.css';
import { type DiffFile, parseDiff } from './parseDiff';

/// Two columns of code need this much room.
const WIDE = 900;
/// Files are expanded until this many lines are shown; a large one stays collapsed in any case.
const OPEN_LINES = 1_500;
const LARGE_FILE = 600;

/// Lines that belong to no file.
const NOTES = 5;

type Way = 'side' | 'unified';

/// A diff, file by file: in two columns where there is room for them.
export function DiffView({ text }: { text: string }) {
  const diff = useMemo(() => parseDiff(text), [text]);
  const { ref, width } = useElementSize();
  const [chosen, setChosen] = useState<Way>();
  const [wrap, setWrap] = useState(true);
  const [turned, setTurned] = useState<ReadonlyMap<number, boolean>>(new Map());
  const prefix = useId();
  const way = chosen ?? (width >= WIDE ? 'side' : 'unified');
  const open = openAtFirst(diff.files);
  const isOpen = (index: number) => turned.get(index) ?? open[index] ?? false;
  const anyOpen = diff.files.some((_, index) => isOpen(index));
  const turn = (index: number, to: boolean) => setTurned((before) => new Map(before).set(index, to));

  if (diff.files.length === 0 && diff.notes.length === 0) return <Empty title="No changes" />;
  return (
    <div ref={ref}>
      <div className={classes.tools}>
        <Text size="sm" className={classes.sum}>
          {plural(diff.files.length, 'file')} <Counts added={diff.added} removed={diff.removed} />
        </Text>
        <Choice
          label="Show changes"
          value={way}
          words={{ unified: 'Unified', side: 'Side by side' }}
          onChange={setChosen}
        />
        <Switch
          size="xs"
          label="Wrap"
          checked={wrap}
          onChange={(event) => setWrap(event.currentTarget.checked)}
        />
        <Button
          size="compact-xs"
          variant="default"
          onClick={() => setTurned(new Map(diff.files.map((_, index) => [index, !anyOpen])))}
        >
          {anyOpen ? 'Collapse all' : 'Expand all'}
        </Button>
      </div>
      {diff.notes.length > 0 && (
        <Text size="sm" className={classes.note} role="note">
          {diff.notes.slice(0, NOTES).map(visible).join(' ')}
          {diff.notes.length > NOTES &&
            ` … and ${plural(diff.notes.length - NOTES, 'more line')} outside any file`}
        </Text>
      )}
      {diff.files.length > 1 && (
        <nav aria-label="Changed files">
          <ul className={classes.list}>
            {diff.files.map((file, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a diff never changes, and names may repeat
              <li key={index}>
                <a
                  href={`#${prefix}-${index}`}
                  onClick={(event) => {
                    event.preventDefault();
                    turn(index, true);
                    document.getElementById(`${prefix}-${index}`)?.scrollIntoView({ block: 'start' });
                  }}
                >
                  {fileTitle(file)}
                </a>
                <FileCounts file={file} />
              </li>
            ))}
          </ul>
        </nav>
      )}
      {diff.files.map((file, index) => (
        <DiffFilePanel
          // biome-ignore lint/suspicious/noArrayIndexKey: a diff never changes, and names may repeat
          key={index}
          id={`${prefix}-${index}`}
          file={file}
          // One side of these would be empty.
          side={way === 'side' && file.kind !== 'added' && file.kind !== 'removed'}
          wrap={wrap}
          open={isOpen(index)}
          setOpen={(to) => turn(index, to)}
        />
      ))}
    </div>
  );
}

function openAtFirst(files: readonly DiffFile[]): boolean[] {
  let shown = 0;
  return files.map((file) => {
    const lines = file.added + file.removed;
    const fits = lines <= LARGE_FILE && shown + lines <= OPEN_LINES;
    if (fits) shown += lines;
    return fits;
  });
}

// What a browser fetches before the first screen is there, as gzip makes it: `node scripts/size.mjs [DIST]`.
// Goes by the build's own manifest: the entry and the page, with everything that they import at once. Ends with 1 where
// scripts weigh more than they may.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const MOST = 300_000;
const ENTRY = 'index.html';
const PAGES = { '/': [ENTRY], '/jobs': [ENTRY, 'src/pages/jobs/JobsPage.tsx'] };

const dist = process.argv[2] ?? 'dist';
const manifest = JSON.parse(await readFile(join(dist, '.vite/manifest.json'), 'utf8'));

/** The files that are needed at once for these chunks: what they import, not what they fetch later. */
function needed(chunks) {
  const seen = new Set();
  const visit = (name) => {
    if (seen.has(name)) return;
    if (!manifest[name]) throw new Error(`${name} is not in the manifest of ${dist}: has a page moved?`);
    seen.add(name);
    for (const next of manifest[name].imports ?? []) visit(next);
  };
  for (const name of chunks) visit(name);
  const scripts = [...seen].map((name) => manifest[name].file).filter((file) => file.endsWith('.js'));
  const styles = [...new Set([...seen].flatMap((name) => manifest[name].css ?? []))];
  return { scripts, styles };
}

async function gzipped(files) {
  const sizes = await Promise.all(
    files.map(async (file) => gzipSync(await readFile(join(dist, file)), { level: 9 }).length),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

let tooMuch = false;
for (const [path, chunks] of Object.entries(PAGES)) {
  const { scripts, styles } = needed(chunks);
  const script = await gzipped(scripts);
  const style = await gzipped(styles);
  const verdict = script > MOST ? ` — more than ${MOST}` : '';
  console.log(
    `${path.padEnd(6)} ${script} bytes of script in ${scripts.length} files, ${style} of styles${verdict}`,
  );
  tooMuch ||= script > MOST;
}
process.exitCode = tooMuch ? 1 : 0;

// Writes FILE.gz and FILE.br beside every file that is worth it: the binary carries those and never compresses while it serves.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

const SMALLEST = 1024;
/** Fonts and pictures are packed already. */
const PACKED = /\.(?:png|jpe?g|webp|woff2|gz|br|map)$/;

/** The document is made anew for each answer, with its nonce, and goes out as it is. */
const isServedAsItIs = (name) => name === 'index.html';

export async function compressAll(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter(
    (entry) => entry.isFile() && !PACKED.test(entry.name) && !isServedAsItIs(entry.name),
  );
  await Promise.all(files.map((entry) => compress(join(entry.parentPath, entry.name))));
}

async function compress(path) {
  const bytes = await readFile(path);
  if (bytes.length < SMALLEST) return;
  const [gz, br] = await Promise.all([
    promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION }),
    promisify(brotliCompress)(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
  ]);
  if (gz.length >= bytes.length || br.length >= bytes.length) return;
  await Promise.all([writeFile(`${path}.gz`, gz), writeFile(`${path}.br`, br)]);
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await compressAll(process.argv[2] ?? 'dist');
}

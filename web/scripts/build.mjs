// The page, ready to be carried inside the binary: `node scripts/build.mjs [--outDir DIR]`.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'vite';
import { compressAll } from './compress.mjs';

const { values } = parseArgs({ options: { outDir: { type: 'string', default: 'dist' } } });
const root = fileURLToPath(new URL('..', import.meta.url));

// Whatever the shell says: what is embedded is never a development build.
process.env.NODE_ENV = 'production';
await build({ root, build: { outDir: values.outDir, emptyOutDir: true } });
await compressAll(values.outDir);

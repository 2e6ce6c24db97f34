// The page, ready to be carried inside the binary: `npm run build [-- --outDir DIR]`.
import { fileURLToPath } from 'node:url';
import { parseArgs, stripVTControlCharacters } from 'node:util';
import { build } from 'vite';
import { compressAll } from './compress.mjs';

const { values } = parseArgs({ options: { outDir: { type: 'string', default: 'dist' } } });
const root = fileURLToPath(new URL('..', import.meta.url));

// Whatever the shell says: what is embedded is never a development build.
process.env.NODE_ENV = 'production';
try {
  await build({ root, build: { outDir: values.outDir, emptyOutDir: true } });
  await compressAll(values.outDir);
} catch (error) {
  // Cargo shows one line of this where the page is not required: the one that says what is wrong.
  const text = stripVTControlCharacters(error instanceof Error ? error.message : String(error));
  const telling = text.split('\n').find((line) => line.trim() !== '' && !line.startsWith('Build failed'));
  console.error(`Error: ${telling ?? text}\n${text}`);
  process.exit(1);
}

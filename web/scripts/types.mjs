// The API's types, from the OpenAPI document that the coordinator's own tests keep in docs/. `--check` writes nothing and
// fails where the file is not what would be written.
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';

const document = new URL('../../docs/openapi.json', import.meta.url);
const file = new URL('../src/api/schema.d.ts', import.meta.url);

const wanted = COMMENT_HEADER + astToString(await openapiTS(document));
if (process.argv.includes('--check')) {
  const found = await readFile(file, 'utf8').catch(() => '');
  if (found !== wanted) {
    console.error('web/src/api/schema.d.ts is out of date: `cargo xtask web-types` writes it anew');
    process.exit(1);
  }
} else {
  await writeFile(file, wanted);
  console.error(`wrote ${fileURLToPath(file)}`);
}

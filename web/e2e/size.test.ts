import { get } from 'node:http';
import { expect, test } from 'vitest';
import { setTheStage } from './harness';

const stage = setTheStage();

/// What a script weighs on its way, packed by gzip.
function gzipped(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { 'accept-encoding': 'gzip' } }, (answer) => {
      let bytes = 0;
      answer.on('data', (piece: Buffer) => {
        bytes += piece.length;
      });
      answer.on('end', () => resolve(bytes));
    }).on('error', reject);
  });
}

test.each(['/', '/jobs'])('a cold load of %s fetches less than 300 KB of script', async (path) => {
  const tab = await stage.open(path);
  await tab.page.getByRole('heading', { level: 1 }).waitFor();
  await tab.page.getByLabel('Connection: live').waitFor();
  const scripts = await tab.page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .filter((entry) => entry.name.endsWith('.js'))
      .map((entry) => ({ url: entry.name, sent: (entry as PerformanceResourceTiming).encodedBodySize })),
  );
  expect(scripts.length).toBeGreaterThan(0);
  const packed = (await Promise.all(scripts.map(({ url }) => gzipped(url)))).reduce((a, b) => a + b, 0);
  const sent = scripts.reduce((sum, script) => sum + script.sent, 0);
  process.stdout.write(`${path}: ${scripts.length} scripts, ${packed} bytes gzipped, ${sent} as sent\n`);
  expect(packed).toBeLessThan(300_000);
  expect(sent).toBeLessThanOrEqual(packed);
});

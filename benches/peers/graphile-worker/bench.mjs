// graphile-worker on the database at DATABASE_URL: `node bench.mjs tuned|plain JOBS` prints one line of JSON.
// "tuned" is what its documentation recommends for throughput: a local queue and batched completion.
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const [mode, count] = [process.argv[2], Number(process.argv[3])];
const connectionString = process.env.DATABASE_URL;
// A line per job would be measured too.
const logger = new Logger(() => () => {});
const payload = { text: "x".repeat(200) };
const watcher = new pg.Client({ connectionString });
await watcher.connect();

const utils = await makeWorkerUtils({ connectionString, logger });
await utils.migrate();

async function transactions() {
  // The server writes its statistics with a delay; wait until they stand still.
  let last = -1;
  for (;;) {
    await new Promise((done) => setTimeout(done, 1100));
    await watcher.query("select pg_stat_clear_snapshot()");
    const { rows } = await watcher.query(
      "select xact_commit::bigint as c, xact_rollback::bigint as r from pg_stat_database where datname = current_database()",
    );
    const now = Number(rows[0].c);
    if (now - last <= 3) return { commits: now, rollbacks: Number(rows[0].r) };
    last = now;
  }
}

const preset =
  mode === "tuned"
    ? { worker: { connectionString, logger, maxPoolSize: 25, concurrentJobs: 24, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } }
    : { worker: { connectionString, logger, maxPoolSize: 25, concurrentJobs: 24 } };

// Enqueue in batches of 1,000.
const enqueueStart = performance.now();
for (let made = 0; made < count; made += 1000) {
  const jobs = Array.from({ length: Math.min(1000, count - made) }, () => ({ identifier: "noop", payload }));
  await utils.addJobs(jobs);
}
const enqueueSeconds = (performance.now() - enqueueStart) / 1000;

const before = await transactions();
let handled = 0;
let finish;
const all = new Promise((done) => (finish = done));
const drainStart = performance.now();
const runner = await run({
  preset,
  taskList: {
    noop: async () => {
      if (++handled === count) finish();
    },
  },
  noHandleSignals: true,
});
await all;
// Completed means gone from the table.
for (;;) {
  const { rows } = await watcher.query("select exists (select 1 from graphile_worker._private_jobs) as left");
  if (!rows[0].left) break;
}
const drainSeconds = (performance.now() - drainStart) / 1000;
await runner.stop();
const after = await transactions();

// Pickup on an idle system: one job at a time, with a pause between.
const latencies = [];
let started;
const idle = await run({ preset: { worker: { connectionString, logger, concurrentJobs: 4 } }, taskList: { noop: async () => started?.() }, noHandleSignals: true });
for (let i = 0; i < 200; i++) {
  await new Promise((done) => setTimeout(done, 20));
  const begin = performance.now();
  const start = new Promise((done) => (started = done));
  await utils.addJob("noop", payload);
  await start;
  latencies.push(performance.now() - begin);
}
await idle.stop();
latencies.sort((a, b) => a - b);
await utils.release();
await watcher.end();
console.log(
  JSON.stringify({
    peer: "graphile-worker",
    mode,
    jobs: count,
    enqueuePerSecond: count / enqueueSeconds,
    drainPerSecond: count / drainSeconds,
    transactionsPerJob: (after.commits - before.commits) / count,
    rollbacks: after.rollbacks - before.rollbacks,
    pickupMs: { p50: latencies[100], p99: latencies[198] },
  }),
);
process.exit(0);

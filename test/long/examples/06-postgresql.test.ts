/** Runs the steps of the example's README, then shuts the database down while clients are connected. */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startClient } from '../../support/client-command.ts';
import { type Example, startExample } from '../../support/example.ts';
import { type PodRecord, recordPods, statusOf } from '../../support/pods.ts';
import { postgresArchive } from '../../support/postgres-image.ts';

let example: Example;
let record: PodRecord;
beforeAll(async () => {
  example = await startExample('06-postgresql');
  await example.lifepod.cliOk('image', 'load', await postgresArchive());
  record = await recordPods(example.lifepod);
});
afterAll(async () => {
  record?.end();
  await example?.stop();
});

const psql = (...args: string[]): string[] => [
  'exec',
  'database',
  '-c',
  'postgres',
  '--',
  'psql',
  '-U',
  'postgres',
  '-d',
  'shop',
  '-At',
  ...args,
];
/** The psql client stays connected until it has the results of all commands. */
const connected = (...commands: string[]) => {
  const words = psql(...commands.flatMap((sql) => ['-c', `"${sql}"`]));
  return startClient(example.lifepod, 'sh', ['-c', `exec kubectl --kubeconfig "$1" ${words.join(' ')}`]);
};
const ends = (...names: string[]) =>
  names.map((name) => {
    const { exitCode, reason } = statusOf(record.now('database'), name).state?.terminated ?? {};
    return `${name} ${reason} ${exitCode}`;
  });
const STAGES = ['checkpoint', 'stop-accepting', 'shut-down', 'verify'];
const CLEAN = [...STAGES, 'postgres'].map((name) => `${name} Completed 0`);

test('06-postgresql: a database starts', async () => {
  await example.step('kubectl apply -f database.yaml');
});

test('06-postgresql: deleted right after a write, the database shuts down cleanly, long before its grace period ends', async () => {
  const began = Date.now();
  await example.step('kubectl delete pod database');
  expect(Date.now() - began).toBeLessThan(30_000);
  expect(ends(...STAGES, 'postgres')).toEqual(CLEAN);
  const { deadline = '', preExitDeadline = '' } = record.now('database').status?.termination ?? {};
  expect(Date.parse(deadline) - Date.parse(preExitDeadline)).toBe(10_000);
  for (const name of STAGES) expect(statusOf(record.now('database'), name).image).toMatch(/postgres:15$/);
  const drawn = await example.step('kubectl lifepod timeline database');
  for (const name of STAGES) expect(drawn).toMatch(new RegExp(` ${name} .* exit 0$`, 'm'));
});

test('06-postgresql: the next server has every row and needs no recovery', async () => {
  expect(await example.step('kubectl logs database')).not.toContain('recovery');
});

test('06-postgresql: an idle client is disconnected, a client in a transaction may finish it, and a new client is refused', async () => {
  const idle = connected(`SELECT 'idle'`, '\\! sleep 3600');
  const busy = connected('BEGIN', 'INSERT INTO orders VALUES (0)', `SELECT 'busy'`, 'SELECT pg_sleep(3)', 'COMMIT');
  await Promise.all([idle.printed(/^idle$/m), busy.printed(/^busy$/m)]);
  const began = Date.now();
  await example.lifepod.kubectlOk('delete', 'pod', 'database', '--wait=false');
  await record.until('database', (pod) => statusOf(pod, 'stop-accepting').state?.running !== undefined);
  const log = startClient(example.lifepod, 'lifepod', ['logs', 'database', '-c', 'stop-accepting', '-f']);
  await log.printed(/new clients are refused/);
  const late = await example.lifepod.kubectl(...psql('-c', 'SELECT 1'));
  expect(late).toMatchObject({ code: 2, stderr: expect.stringContaining('pg_hba.conf rejects connection') });
  const { stdout } = await busy.ended;
  expect(stdout).toMatch(/COMMIT\n$/);
  await record.gone('database');
  expect(Date.now() - began).toBeLessThan(40_000);
  expect(ends(...STAGES, 'postgres')).toEqual(CLEAN);
  idle.kill('SIGKILL');
  await Promise.all([idle.ended, log.ended]);

  await example.lifepod.kubectlOk('apply', '-f', `${example.folder}/database.yaml`);
  await example.lifepod.kubectlOk('wait', '--for=condition=Ready', 'pod/database', '--timeout=60s');
  expect(await example.lifepod.kubectlOk(...psql('-c', 'SELECT count(*) FROM orders'))).toBe('1001\n');
  expect(await example.lifepod.kubectlOk('logs', 'database', '-c', 'postgres')).not.toContain('recovery');
});

test('06-postgresql: cleanup leaves nothing', async () => {
  await example.step('kubectl delete -f database.yaml');
  expect(existsSync(example.nodeFolder)).toBe(false);
  expect(example.rest()).toEqual([]);
});

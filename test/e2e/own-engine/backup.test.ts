import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { Pod, Secret } from '../../../src/api/generated/types.ts';
import { readArchive } from '../../../src/cli/backup/archive-reader.ts';
import { completeRestore } from '../../../src/engine/data-folder/replacement.ts';
import { hasNetwork } from '../../../src/engine/leftovers.ts';
import { systemTimers } from '../../../src/platform/node-js.ts';
import { haveEnded, runCommand } from '../../../src/platform/processes.ts';
import { busyboxArchive } from '../../support/images.ts';
import { clientOf, LAUNCHER, type LifepodClient, launch, scratchFolder } from '../../support/lifepod.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { ownDisk } from '../../support/own-disk.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';
import { statusOf } from '../../support/pods.ts';

useOwnEngine();

const backups = scratchFolder();
const file = join(backups.path, 'backup.tar.gz');
let laterRevision: string;

const PODS = '/api/v1/namespaces/default/pods';

const ready = (name: string): Promise<void> => lifepod.wait('--for=condition=Ready', `pod/${name}`);

/** Returns a PID. Throws if no process has the argument. */
function processWith(text: string): number {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const path = join('/proc', pid, 'cmdline');
    if (existsSync(path) && readFileSync(path, 'utf8').split('\0').includes(text)) return Number(pid);
  }
  throw new Error(`no process has the argument ${text}`);
}

beforeAll(async () => {
  await lifepod.kubectlOk('create', 'secret', 'generic', 'db', '--from-literal=password=secret');
  await lifepod.apply(pod('kept', { app: [{ name: 'app', script: WAIT }] }));
  await lifepod.apply(pod('gone', { app: [{ name: 'app', script: 'exit 0' }], spec: { restartPolicy: 'Never' } }));
  await lifepod.apply(pod('never', { app: [{ name: 'app', script: WAIT }], spec: { restartPolicy: 'Never' } }));
  await lifepod.wait('--for=jsonpath={.status.phase}=Succeeded', 'pod/gone');
  await lifepod.delete('pod', 'gone');
  await ready('kept');
  await ready('never');
  const printed = await lifepod.cliOk('backup', file);
  expect(printed).toMatch(/^backed up .* to .*: \d+ objects at revision \d+\nthe file contains the keys/);
  await lifepod.apply(
    pod('later', { app: [{ name: 'app', script: `echo created after the backup >/dev/null; ${WAIT}` }] }),
  );
  await ready('later');
  const list = JSON.parse(await lifepod.kubectlOk('get', '--raw', PODS)) as { metadata: { resourceVersion: string } };
  laterRevision = list.metadata.resourceVersion;
  return () => backups.remove();
});

/** The watch from laterRevision ends at once with an error. */
async function watchAgain(client: LifepodClient): Promise<string> {
  const query = `watch=1&timeoutSeconds=60&resourceVersion=${laterRevision}`;
  const { stdout, stderr } = await client.kubectl('get', '--raw', `${PODS}?${query}`);
  return stdout + stderr;
}

/** Kills the command as soon as a file whose name matches appears in the folder, or changes. */
async function killedAt(folder: string, appears: RegExp, ...command: string[]): Promise<void> {
  const child = spawn(LAUNCHER, [...command, '--data-dir', lifepod.dataDir], { stdio: 'ignore' });
  const watcher = watch(folder, (_event, name) => {
    if (appears.test(name ?? '')) child.kill('SIGKILL');
  });
  await once(child, 'exit');
  watcher.close();
}

test('a killed backup leaves no part of a file under its name, and disturbs neither the engine nor the next backup', async () => {
  const target = join(backups.path, 'killed.tar.gz');
  for (const [folder, appears] of [
    [lifepod.dataDir, /^backup$/],
    [backups.path, /\.new$/],
  ] as const) {
    await killedAt(folder, appears, 'backup', target, '--force');
    if (existsSync(target)) expect((await readArchive(target)).nodeName).toBe('node-1');
  }
  await lifepod.cliOk('backup', target, '--force');
  expect((await readArchive(target)).objects).toBeGreaterThan(10);
  expect(existsSync(join(lifepod.dataDir, 'backup'))).toBe(false);
  expect(readdirSync(backups.path).filter((name) => name.endsWith('.new'))).toEqual([]);
});

test('after a restore next to living containers, Pods of the backup run on, and containers of later Pods end', async () => {
  const before = await lifepod.get<Pod>('pod', 'kept');
  const pid = processWith(`echo created after the backup >/dev/null; ${WAIT}`);
  const refused = await lifepod.cli('restore', file, '--force');
  expect(refused.stderr).toContain('is in use by a running lifepod');
  await lifepod.kill('SIGKILL');
  expect((await lifepod.cli('restore', file)).stderr).toContain('is not empty: choose another --data-dir');
  await killedAt(lifepod.dataDir, /^restore$/, 'restore', file, '--force');
  await killedAt(lifepod.dataDir, /^before-restore/, 'restore', file, '--force');
  // The next start of the engine would complete the restore in the same way.
  completeRestore(lifepod.dataDir);
  for (const part of ['engine.json', 'store/data.mdb', 'pki/ca.key']) {
    expect(existsSync(join(lifepod.dataDir, part)), part).toBe(true);
  }
  expect(await lifepod.cliOk('restore', file, '--force')).toContain('the former data is in');
  await lifepod.up();
  const after = await lifepod.get<Pod>('pod', 'kept');
  expect(after.metadata.uid).toBe(before.metadata.uid);
  expect(statusOf(after, 'app')).toMatchObject({ restartCount: 0, containerID: statusOf(before, 'app').containerID });
  expect((await lifepod.kubectl('get', 'pod', 'later')).stderr).toContain('NotFound');
  expect(await haveEnded([pid], 100_000, systemTimers())).toBe(true);
  const steps = 'jsonpath={.podName} {.transitions[*].type}{"\\n"}';
  await lifepod.until(['get', 'podrecords', '-w', '-o', steps], (line) => /^later .*\bRemoved\b/.test(line));
  expect(await lifepod.cliOk('why', 'later')).toContain('the engine stopped and removed it, because it still ran but');
  expect(await watchAgain(lifepod)).toContain('too old resource version');
});

test('another data folder with a restored backup has its Secrets and records, and starts the Pods that may restart', async () => {
  await lifepod.cliOk('down');
  const scratch = scratchFolder();
  const other = clientOf(scratch.path, join(scratch.path, 'kubeconfig'));
  try {
    await other.cliOk('restore', file);
    await other.cliOk('up', '--detach', '--port', '0');
    await other.cliOk('image', 'load', await busyboxArchive());
    await other.wait('--for=condition=Ready', 'pod/kept');
    await other.wait('--for=jsonpath={.status.phase}=Failed', 'pod/never');
    const { data } = await other.get<Secret>('secret', 'db');
    expect(Buffer.from(data?.['password'] ?? '', 'base64').toString()).toBe('secret');
    expect((await other.kubectl('get', 'pod', 'later')).stderr).toContain('NotFound');
    expect(await other.cliOk('timeline', 'gone')).toContain('exit 0');
    expect(await other.cliOk('timeline', 'never')).toMatch(/sandbox .*✗ +lost 1×\napp +app .*✗ +lost, end unknown\n/);
    expect((await other.cli('logs', 'never')).stderr).toContain('the container runtime has lost the container');
    expect(await watchAgain(other)).toContain('too old resource version');
  } finally {
    await launch(['down', '--data-dir', scratch.path]);
    await scratch.remove();
  }
});

test('a start and down on a full disk leave no network, and say that the disk is full', async () => {
  await lifepod.cliOk('down');
  const scratch = await ownDisk('20m', 2_000);
  const other = clientOf(scratch.path, join(scratch.path, 'kubeconfig'));
  try {
    await other.cliOk('restore', file);
    // The lock has its place on the disk, as after an earlier start.
    writeFileSync(join(scratch.path, 'lock'), '1 engine\n');
    const filler = join(scratch.path, 'filler');
    await runCommand('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4096']);
    const refused = await other.cli('up', '--detach', '--port', '0');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('the disk is full')]);
    expect(hasNetwork(scratch.path)).toBe(false);
    const down = await other.cli('down');
    expect([down.code, down.stderr]).toEqual([1, expect.stringContaining('the disk is full')]);
    expect(down.stderr).toContain(`nothing from ${scratch.path} is running or mounted any more, but its store may`);
  } finally {
    rmSync(join(scratch.path, 'filler'), { force: true });
    await launch(['down', '--data-dir', scratch.path]);
    await scratch.remove();
  }
});

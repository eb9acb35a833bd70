import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { pod } from '../support/manifests.ts';
import { lifepod, testInFileNamespace as test } from '../support/shared-engine.ts';

/** These lines take about 15 MiB, including the prefix that the runtime writes in each line. */
const FIRST = 300_000;
const LAST = FIRST + 5;
const untilExists = (file: string): string => `until [ -e ${file} ]; do usleep 50000; done`;
/**
 * The tests create this file when the log has the last line, because containerd 1.6.20 loses the output that it has not read when a
 * container ends.
 */
const LEAVE = untilExists('/tmp/leave');
const SCRIPT = `echo ready; ${untilExists('/tmp/begin')}; seq 1 ${FIRST}; ${untilExists('/tmp/go')}; seq ${FIRST + 1} ${LAST}; echo end; ${LEAVE}`;
/** The exit code is ignored, because the container may end, and kill touch, before touch has ended. */
const touch = (pod: string, file: string) => lifepod.exec(pod, '--', 'touch', file);
const logFolder = (pod: string, uid = ''): string =>
  join(lifepod.dataDir, 'logs', 'pods', `${lifepod.namespace}_${pod}_${uid}`, 'app');

test('a log of more than 10 MiB is rotated, and logs -f loses no line', async () => {
  await lifepod.apply(pod('writer', { app: [{ name: 'app', script: SCRIPT }], spec: { restartPolicy: 'Never' } }));
  await lifepod.wait('--for=jsonpath={.status.containerStatuses[0].started}=true', 'pod/writer');
  const { uid } = (await lifepod.get<Pod>('pod', 'writer')).metadata;
  const folder = logFolder('writer', uid);
  const follows = Promise.withResolvers<void>();
  const followed = lifepod.until(['logs', '-f', 'writer'], (line) => {
    if (line === 'ready') follows.resolve();
    return line === 'end';
  });
  await follows.promise;
  await touch('writer', '/tmp/begin');
  await rotated(folder);
  await touch('writer', '/tmp/go');
  const lines = (await followed).slice(1);
  await touch('writer', '/tmp/leave');
  expect(lines).toHaveLength(LAST + 1);
  expect(lines.findIndex((line, index) => line !== String(index + 1))).toBe(LAST);

  await lifepod.wait('--for=jsonpath={.status.phase}=Succeeded', 'pod/writer');
  // Without -f, kubectl logs prints only the newest file.
  const written = readFileSync(join(folder, '0.log'), 'utf8').split('\n').length - 1;
  expect(written).toBeLessThan(FIRST);
  const shown = (await lifepod.kubectlOk('logs', 'writer')).split('\n').slice(0, -1);
  expect(shown).toHaveLength(written);
  // The first record may be the rest of a line that starts in the previous file.
  expect(shown.slice(1)).toEqual(lines.slice(1 - written));
  expect(await lifepod.kubectlOk('logs', 'writer', '--tail=2')).toBe(`${LAST}\nend\n`);
});

/** The limit for the logs of a container: 5 files of 10 MiB. */
const LIMIT_BYTES = 5 * 10 * 2 ** 20;
const WRITTEN_BYTES = 100_000_000;
/** Writes lines of 2,000 bytes as fast as possible, and at last the line "end". */
const FLOOD = `yes "$(printf 'x%.0s' $(seq 1 1999))" | head -c ${WRITTEN_BYTES}; echo end`;

test('the logs of a container that writes as fast as possible exceed their limit by at most one second of output', async () => {
  await lifepod.apply(
    pod('flood', { app: [{ name: 'app', script: `${FLOOD}; ${LEAVE}` }], spec: { restartPolicy: 'Never' } }),
  );
  const { uid } = (await lifepod.get<Pod>('pod', 'flood')).metadata;
  const folder = logFolder('flood', uid);
  let most = 0;
  let first = 0;
  const sampler = setInterval(() => {
    const bytes = bytesIn(folder);
    if (bytes > 0) first ||= performance.now();
    most = Math.max(most, bytes);
  }, 20);
  await lifepod.wait('--for=jsonpath={.status.containerStatuses[0].started}=true', 'pod/flood');
  await until(folder, () => hasEnded(folder));
  clearInterval(sampler);
  const perSecond = WRITTEN_BYTES / ((performance.now() - first) / 1_000);
  expect(most).toBeGreaterThan(LIMIT_BYTES / 5);
  expect(most).toBeLessThan(LIMIT_BYTES + perSecond);
  await touch('flood', '/tmp/leave');
  await lifepod.wait('--for=jsonpath={.status.phase}=Succeeded', 'pod/flood');
  // If the container ends before the first check of its log, the size is limited only after the end.
  await until(folder, () => bytesIn(folder) <= LIMIT_BYTES);
});

test('the next engine limits the logs that a container wrote while no engine ran', async () => {
  // Without an engine, the test and the container communicate by files in a volume.
  const script = `${untilExists('/tmp/go')}; ${FLOOD}; ${untilExists('/gate/leave')}; rm /gate/leave`;
  const app = [{ name: 'app', script, volumeMounts: [{ name: 'gate', mountPath: '/gate' }] }];
  await lifepod.apply(
    pod('alone', { app, spec: { restartPolicy: 'Never', volumes: [{ name: 'gate', emptyDir: {} }] } }),
  );
  await lifepod.wait('--for=jsonpath={.status.containerStatuses[0].started}=true', 'pod/alone');
  const { uid } = (await lifepod.get<Pod>('pod', 'alone')).metadata;
  const folder = logFolder('alone', uid);
  await touch('alone', '/tmp/go');
  await lifepod.kill('SIGKILL');
  await until(folder, () => hasEnded(folder));
  expect(bytesIn(folder)).toBeGreaterThan(WRITTEN_BYTES);
  const gate = join(lifepod.dataDir, 'pods', uid ?? '', 'volumes/kubernetes.io~empty-dir/gate');
  writeFileSync(join(gate, 'leave'), '');
  await until(gate, () => !existsSync(join(gate, 'leave')));
  await lifepod.up();
  await until(folder, () => bytesIn(folder) <= LIMIT_BYTES);
  await lifepod.wait('--for=jsonpath={.status.phase}=Succeeded', 'pod/alone');
  expect(bytesIn(folder)).toBeGreaterThan(LIMIT_BYTES / 2);
  expect(await lifepod.kubectlOk('logs', 'alone', '--tail=1')).toBe('end\n');
});

function bytesIn(folder: string): number {
  const files = existsSync(folder) ? readdirSync(folder) : [];
  return files.reduce((sum, file) => sum + (statSync(join(folder, file), { throwIfNoEntry: false })?.size ?? 0), 0);
}

/** After a rotation, the current file may be empty. The newest rotated file, which is not compressed, then has the line "end". */
const hasEnded = (folder: string): boolean =>
  readdirSync(folder).some((name) => !/\.(gz|tmp)$/.test(name) && lastBytes(join(folder, name), 7) === ' F end\n');

/** Returns an empty text if the file was renamed or removed. */
function lastBytes(path: string, count: number): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
  try {
    const { size } = fstatSync(file);
    const buffer = Buffer.alloc(Math.min(count, size));
    readSync(file, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString();
  } finally {
    closeSync(file);
  }
}

const rotated = (folder: string): Promise<void> =>
  until(
    folder,
    () =>
      // The new file shows that the runtime has reopened the log.
      readdirSync(folder).some((name) => /^0\.log\.\d{8}-\d{6}$/.test(name)) && existsSync(join(folder, '0.log')),
  );

const until = (folder: string, done: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const look = (): void => {
      if (!done()) return;
      watcher.close();
      resolve();
    };
    const watcher = watch(folder, look);
    look();
  });

/** Rotation as a user meets it: 10 MiB are set aside within some seconds, and `kubectl logs -f` reads on. */
import { existsSync, readdirSync, readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { type Lifepod, startLifepod } from '../support/lifepod.ts';
import { pod } from '../support/manifests.ts';

let lifepod: Lifepod;
beforeAll(async () => {
  lifepod = await startLifepod();
});
afterAll(() => lifepod?.stop());

/** With what the runtime writes before each, 15 MiB. */
const FIRST = 300_000;
const LAST = FIRST + 5;
const SCRIPT = `seq 1 ${FIRST}; until [ -e /tmp/go ]; do usleep 50000; done; seq ${FIRST + 1} ${LAST}; echo end`;

test('a log of more than 10 MiB is rotated, and following it loses no line', async () => {
  await lifepod.apply(pod('writer', { app: [{ name: 'app', script: SCRIPT }], spec: { restartPolicy: 'Never' } }));
  await lifepod.kubectlOk('wait', '--for=jsonpath={.status.containerStatuses[0].started}=true', 'pod/writer');
  const { uid } = (await lifepod.get<Pod>('pod', 'writer')).metadata;
  const folder = join(lifepod.dataDir, 'logs', 'pods', `default_writer_${uid}`, 'app');
  const followed = lifepod.until(['logs', '-f', 'writer'], (line) => line === 'end');
  await rotated(folder);
  await lifepod.kubectlOk('exec', 'writer', '--', 'touch', '/tmp/go');
  const lines = await followed;
  expect(lines).toHaveLength(LAST + 1);
  expect(lines.findIndex((line, index) => line !== String(index + 1))).toBe(LAST);

  await lifepod.kubectlOk('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/writer', '--timeout=60s');
  // Without following, the file that was written last is what is read.
  const written = readFileSync(join(folder, '0.log'), 'utf8').split('\n').length - 1;
  expect(written).toBeLessThan(FIRST);
  expect(await lifepod.kubectlOk('logs', 'writer')).toBe(`${lines.slice(-written).join('\n')}\n`);
  expect(await lifepod.kubectlOk('logs', 'writer', '--tail=2')).toBe(`${LAST}\nend\n`);
});

const rotated = (folder: string): Promise<void> =>
  new Promise((resolve) => {
    const look = (): void => {
      // The runtime has opened the new file, too.
      const done = readdirSync(folder).some((name) => /^0\.log\.\d{8}-\d{6}$/.test(name));
      if (!done || !existsSync(join(folder, '0.log'))) return;
      watcher.close();
      resolve();
    };
    const watcher = watch(folder, look);
    look();
  });

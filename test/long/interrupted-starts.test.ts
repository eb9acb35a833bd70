import { existsSync, mkdirSync, readdirSync, watch } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { watchLeaks } from '../support/leaks.ts';
import { freeNetwork, launch, type Scratch, scratchFolder } from '../support/lifepod.ts';
import { startCommand, startSession } from '../support/session-command.ts';

let scratch: Scratch;
let dataDir: string;
beforeEach(() => {
  scratch = scratchFolder();
  dataDir = join(scratch.path, 'data');
  mkdirSync(dataDir);
});
afterEach(() => scratch.remove());

function appears(name: string): Promise<void> {
  const watching = new AbortController();
  return new Promise((resolve) => {
    watch(dataDir, { signal: watching.signal }, () => {
      if (!readdirSync(dataDir).includes(name)) return;
      watching.abort();
      resolve();
    });
  });
}

/** In the order in which a start creates these entries of the data folder, as far as there is an order. */
const ENTRIES = [
  'lock',
  'engine.json',
  'pki',
  'store',
  'containerd',
  'run',
  'cni',
  'kubeconfig',
  'static-pods',
  'logs',
];

test.each([
  ...ENTRIES.map((name) => [name, 'SIGINT', []] as const),
  ['lifepod.log', 'SIGINT', ['--detach']],
  ['engine.json', 'SIGTERM', ['--detach']],
  ['kubeconfig', 'SIGINT', ['--detach']],
] as const)(
  'an interruption when %s appears (%s, %j) is one line, and leaves nothing',
  async (name, signal, options) => {
    const moment = appears(name);
    const up = startSession(dataDir, 'up', [...options, ...(await freeNetwork()), '--log-level', 'error']);
    await Promise.race([moment, up.ended]);
    up.signal(signal);
    const { code, stdout, stderr } = await up.ended;
    if (stdout === '') {
      expect({ code, stderr }).toEqual({
        code: signal === 'SIGINT' ? 130 : 143,
        stderr: `lifepod: stopped by ${signal}\n`,
      });
      expect(readdirSync(dataDir)).toEqual([]);
    } else {
      // The engine became ready before it received the signal. The signal then stops the engine, unless the engine runs in the background.
      expect(stderr).toMatch(/^lifepod \S+ is ready after .*\n(warning: .*\n)*(lifepod has stopped, .*\n)?$/);
      await launch(['down', '--data-dir', dataDir]);
    }
    expect(await (await watchLeaks(dataDir)).left()).toEqual([]);
  },
);

test.each([
  /^\$ lifepod up /,
  /lifepod \S+ is ready/,
  /loaded docker\.io|apply -f/,
  /Pending/,
  /Init:1\/2/,
  /1\/1 {2}Terminating/,
])('Ctrl+C in the demo at %s is one line, and leaves nothing', async (moment) => {
  const demo = startCommand(['demo']);
  const [, folder = ''] = await demo.printed(/--data-dir (\S+)/);
  await demo.printed(moment);
  demo.signal('SIGINT');
  const { code, stdout, stderr } = await demo.ended;
  // On a slow machine, the demo may have begun to clean up before it received the signal.
  const isComplete = /^removed /m.test(stdout);
  expect(code).toBe(isComplete ? 0 : 130);
  // The progress of the demo may be on standard error, but neither an error nor a stack trace.
  expect(stderr).not.toMatch(/^lifepod: |Error|^\s+at /m);
  if (!isComplete) expect(stdout).toMatch(/^stopping and cleaning up\n$/m);
  expect(await (await watchLeaks(folder)).left()).toEqual([]);
  expect(existsSync(folder)).toBe(false);
});

import { mkdirSync, readdirSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { watchLeaks } from '../support/leaks.ts';
import type { Lifepod } from '../support/lifepod.ts';
import { pod, WAIT } from '../support/manifests.ts';
import {
  engineRuns,
  markedKeys,
  type SessionCommand,
  startSession,
  stoppedLifepod,
} from '../support/session-command.ts';

let lifepod: Lifepod;
let file: string;
beforeAll(async () => {
  lifepod = await stoppedLifepod();
  mkdirSync(join(lifepod.dataDir, 'sessions'), { recursive: true, mode: 0o700 });
  file = join(lifepod.dataDir, 'shop.json');
  writeFileSync(
    file,
    shop()
      .map((object) => JSON.stringify(object))
      .join('\n'),
  );
});
afterAll(() => lifepod?.stop());

function shop(): object[] {
  const { spec } = pod('unused', {
    init: [{ name: 'init', script: 'echo prepares' }],
    app: [{ name: 'app', script: `echo serves; ${WAIT}` }],
    defer: [{ name: 'bye', script: 'echo destructor begins; sleep 1; echo destructor ends' }],
    spec: { terminationGracePeriodSeconds: 120 },
  });
  const metadata = { name: 'web', namespace: 'shop' };
  const labels = { app: 'web' };
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: labels, ports: [{ port: 80 }] } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  ];
}

function changeIn(folder: string, done: (name: string) => boolean): Promise<void> {
  const watching = new AbortController();
  return new Promise((resolve) => {
    watch(folder, { signal: watching.signal }, (_, name) => {
      if (name === null || !done(name)) return;
      watching.abort();
      resolve();
    });
  });
}
const recordExists = (): Promise<void> =>
  changeIn(join(lifepod.dataDir, 'sessions'), (name) => /^[0-9a-f]{10}$/.test(name));
const engineHasLock = (): Promise<void> =>
  changeIn(
    lifepod.dataDir,
    (name) => name === 'lock' && readFileSync(join(lifepod.dataDir, name), 'utf8').includes('session'),
  );

interface Step {
  /** When to send the signal: when the output matches, or when the promise resolves. The function is called before the session starts. */
  at: (() => Promise<unknown>) | RegExp;
  signal: NodeJS.Signals;
}
const moments: [string, Step[], number | null][] = [
  ['while the session has joined no engine yet', [{ at: recordExists, signal: 'SIGINT' }], 130],
  ['while the engine starts', [{ at: engineHasLock, signal: 'SIGTERM' }], 143],
  ['when the engine is ready', [{ at: /lifepod \S+ is ready/, signal: 'SIGINT' }], 130],
  ['between two objects', [{ at: /namespace\/shop created/, signal: 'SIGHUP' }], 129],
  ['while an init container runs', [{ at: /\/init \| prepares/, signal: 'SIGINT' }], 130],
  ['while the apps run', [{ at: /\/app \| serves/, signal: 'SIGINT' }], 130],
  [
    'twice: while the apps run and while destructors run',
    [
      { at: /\/app \| serves/, signal: 'SIGINT' },
      { at: /\/bye \| destructor begins/, signal: 'SIGINT' },
    ],
    130,
  ],
  [
    'twice: while the apps run and while the engine stops',
    [
      { at: /\/app \| serves/, signal: 'SIGINT' },
      { at: /stopping the engine/, signal: 'SIGINT' },
    ],
    130,
  ],
  ['by kill -9 between two objects', [{ at: /namespace\/shop created/, signal: 'SIGKILL' }], null],
  [
    'by kill -9 while destructors run',
    [
      { at: /\/app \| serves/, signal: 'SIGINT' },
      { at: /\/bye \| destructor begins/, signal: 'SIGKILL' },
    ],
    null,
  ],
];

async function interrupted(steps: readonly Step[]): Promise<Awaited<SessionCommand['ended']>> {
  const begun = steps.map(({ at }) => (at instanceof RegExp ? undefined : at()));
  const session = startSession(lifepod.dataDir, 'up', [file]);
  for (const [index, { at, signal }] of steps.entries()) {
    await (at instanceof RegExp ? session.printed(at) : Promise.race([begun[index], session.ended]));
    session.signal(signal);
  }
  return session.ended;
}

test.each(moments)('a session that is interrupted %s leaves nothing behind', async (_, steps, exitCode) => {
  const { code, stdout, stderr } = await interrupted(steps);
  expect(code, stdout + stderr).toBe(exitCode);
  if (exitCode === null) await lifepod.cliOk('down');
  // A session that has not joined an engine reports the signal, and starts no second engine to clean up.
  if (!/ is ready after /.test(stderr) && exitCode !== null) {
    expect(stderr).toMatch(new RegExp(`(^|\\n)lifepod: stopped by ${steps[0]?.signal}\\n$`));
    expect(stderr).not.toContain('starting it');
  }
  expect(engineRuns(lifepod), stdout + stderr).toBe(false);
  expect(await (await watchLeaks(lifepod.dataDir)).left(), stdout + stderr).toEqual([]);
  expect(await markedKeys(lifepod), stdout + stderr).toEqual([]);
  expect(readdirSync(join(lifepod.dataDir, 'sessions')), stdout + stderr).toEqual(['gate']);
});

test('the next session deletes what a killed one has left, then creates the same objects', async () => {
  const killed = await interrupted([{ at: /\/app \| serves/, signal: 'SIGKILL' }]);
  expect(killed.code).toBeNull();
  const { code, stdout, stderr } = await interrupted([{ at: /\/app \| serves/, signal: 'SIGINT' }]);
  expect(stderr).toMatch(
    /^deleting what a session that was interrupted or killed \(PID \d+\) has left of [^\n]*deployment\/web[^\n]*\n[\s\S]*deployment\/web created\n/m,
  );
  expect(code, stdout + stderr).toBe(130);
  expect(engineRuns(lifepod)).toBe(false);
  expect(await (await watchLeaks(lifepod.dataDir)).left()).toEqual([]);
  expect(await markedKeys(lifepod)).toEqual([]);
});

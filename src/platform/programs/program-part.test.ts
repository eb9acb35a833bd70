import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { programLoss, programLossIn, programPart } from './program-part.ts';

const absent = './absent.ts';

test.each([
  ['module', () => import(absent)],
  ['file', () => readFile(new URL(absent, import.meta.url))],
])('a missing %s of the program is an error of the server that says what to do', async (_kind, load) => {
  await expect(programPart(load)).rejects.toMatchObject({
    code: 500,
    message: expect.stringMatching(
      /: the program of lifepod was replaced while the engine was running: type 'kill \d+', .* \(in \/.*[^/]: .*absent\.ts/,
    ),
  });
});

test('other errors of a part of the program are not changed', async () => {
  const error = new Error('other');
  await expect(programPart(() => Promise.reject(error))).rejects.toBe(error);
});

const BEGIN = 'the program of lifepod was replaced while the engine was running: ';

test.each([
  [
    'in the background',
    { pid: 7, argv: ['node', 'main.js', 'up', '--data-dir', '/d'] },
    {},
    `${BEGIN}type 'kill 7', which leaves its Pods running, then 'lifepod up --detach --data-dir /d'`,
  ],
  [
    'with the default folder',
    { pid: 7, argv: ['node', 'main.js', 'up', '--shutdown-on-stop'] },
    {},
    `${BEGIN}type 'kill 7', which ends its Pods, then 'lifepod up --detach'`,
  ],
  [
    'that systemd runs',
    { pid: 7, argv: ['node', 'main.js', 'up', '--data-dir=/d'] },
    { SYSTEMD_EXEC_PID: '7' },
    `${BEGIN}type 'systemctl restart lifepod', which leaves its Pods running`,
  ],
  [
    'in a container',
    { pid: 1, argv: ['node', 'main.js', 'up'] },
    { SYSTEMD_EXEC_PID: '7' },
    `${BEGIN}restart its container, which leaves its Pods running`,
  ],
])('an engine %s whose program was replaced must be restarted', (_kind, engine, env, sentence) => {
  expect(programLoss(engine, env, true)).toBe(sentence);
  expect(programLoss(engine, env, false)).toBe(
    sentence.replace(
      'replaced while the engine was running: ',
      'removed while the engine was running: install lifepod again, then ',
    ),
  );
  const message = `Readiness probe errored: Internal error occurred: ${sentence} (in /opt/lifepod: Cannot find module '/x' (y))`;
  expect(programLossIn(message)).toBe(sentence);
  expect(programLossIn('Readiness probe failed: no')).toBeUndefined();
});

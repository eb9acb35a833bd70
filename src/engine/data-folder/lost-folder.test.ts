import { expect, test } from 'vitest';
import { systemTimers } from '../../platform/node-js.ts';
import { rootCommand } from '../../platform/programs/typed-program.ts';
import { findLost, type LostReaders, lostText, refuseLost } from './lost-folder.ts';

/** A PID that no process has: the kernel allows none as high. */
const ENDED = 2 ** 22 + 1;
const NONE: LostReaders = {
  engines: () => [],
  hasRecord: () => false,
  hasProcesses: () => false,
  hasRuntime: () => false,
};
const OTHERS = { ...NONE, hasProcesses: () => true };
const WHAT_TO_TYPE = `'${rootCommand('down', '/d')}' ends`;
const BEGIN = `the data folder /d was deleted while its engine ran: ${WHAT_TO_TYPE}`;
const WITHOUT_ENGINE = `the data folder /d was deleted or moved while processes of its engine ran: ${WHAT_TO_TYPE}`;

test.each<[string, Partial<LostReaders>, string | undefined]>([
  ['nothing runs', {}, undefined],
  ['the engine runs', { engines: () => [7] }, `${BEGIN} the engine (PID 7)`],
  [
    'the engine runs with Pods, although a backup was restored',
    { engines: () => [7], hasRuntime: () => true, hasRecord: () => true },
    `${BEGIN} the engine (PID 7), and its Pods without their grace periods`,
  ],
  ['the engine was killed', OTHERS, `${WITHOUT_ENGINE} what it has left`],
  [
    'the engine was killed and Pods run',
    { ...OTHERS, hasRuntime: () => true },
    `${WITHOUT_ENGINE} what it has left, and its Pods without their grace periods`,
  ],
  ['the engine was killed and the folder was not deleted', { ...OTHERS, hasRecord: () => true }, undefined],
])('if %s, lostText returns the sentence or undefined', (_, readers, text) => {
  expect(lostText('/d', findLost('/d', { ...NONE, ...readers }))).toBe(text);
});

test('the processes of a first start that begins or fails meanwhile are not those of a deleted folder', () => {
  const states =
    (...found: boolean[]) =>
    () =>
      found.shift() ?? false;
  // After the first look, the start writes its record, or fails and ends its processes.
  expect(findLost('/d', { ...OTHERS, hasRecord: states(false, true) })).toBeUndefined();
  expect(findLost('/d', { ...NONE, hasProcesses: states(true, false) })).toBeUndefined();
});

test('a start is refused while an engine without its data folder runs, but not if that engine is about to exit', async () => {
  const timers = systemTimers();
  const refusal = { name: 'UserError', message: `${WITHOUT_ENGINE} what it has left` };
  await expect(refuseLost('/d', timers, () => findLost('/d', OTHERS))).rejects.toMatchObject(refusal);
  await refuseLost('/d', timers, () => undefined);
  // A first start that has failed removes its lock, and then exits.
  let engines = [ENDED];
  const find = () => {
    const lost = findLost('/d', { ...NONE, engines: () => engines });
    engines = [];
    return lost;
  };
  await refuseLost('/d', timers, find);
});

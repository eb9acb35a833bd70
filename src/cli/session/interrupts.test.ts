import { expect, test } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { createInterrupts, outputErrorCode } from './interrupts.ts';
import { refused } from './session.ts';

test('the first signal ends the session, the second its Pods, and the third leaves with the exit code of the first', () => {
  const left: number[] = [];
  const interrupts = createInterrupts((code) => left.push(code));
  const state = () => [interrupts.stop.aborted, interrupts.hurry.aborted, interrupts.exitCode(), ...left];
  expect(state()).toEqual([false, false, undefined]);
  interrupts.interrupt(130);
  expect(state()).toEqual([true, false, 130]);
  interrupts.interrupt(143);
  expect(state()).toEqual([true, true, 130]);
  interrupts.interrupt(130);
  expect(state()).toEqual([true, true, 130, 130]);
});

test('a session whose reader has ended has the exit code of SIGPIPE, and one on a full disk fails', () => {
  const code = (name: string): number => outputErrorCode(Object.assign(new Error(name), { code: name }));
  expect(['EPIPE', 'EIO', 'ENOSPC', 'EFBIG'].map(code)).toEqual([141, 141, 1, 1]);
});

test('errors about manifests are printed, other errors are thrown, and all errors after a signal are ignored', () => {
  const said: string[] = [];
  const interrupts = createInterrupts(() => undefined);
  const handle = refused((line) => said.push(line), interrupts.stop);
  handle(new UserError('a.yaml is wrong\nb.yaml is wrong'));
  expect(said.splice(0)).toEqual(['lifepod: a.yaml is wrong', 'lifepod: b.yaml is wrong']);
  expect(() => handle(new Error('defect'))).toThrow('defect');
  interrupts.interrupt(130);
  for (const error of [new UserError('a.yaml is wrong'), interrupts.stop.reason]) expect(handle(error)).toBeUndefined();
  expect(said).toEqual([]);
});

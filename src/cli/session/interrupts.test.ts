import { expect, test } from 'vitest';
import { createInterrupts } from './interrupts.ts';

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

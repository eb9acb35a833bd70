import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { slowNotice } from './slow-answer.ts';

test('a command says once that the API server does not answer, and nothing if all answers arrive soon', () => {
  const timers = createVirtualTimers();
  const said: string[] = [];
  const sent = slowNotice(timers, (line) => said.push(line));
  const answered = sent();
  timers.advance(4_000);
  answered();
  timers.advance(10_000);
  expect(said).toEqual([]);
  sent();
  sent();
  timers.advance(5_000);
  sent();
  timers.advance(5_000);
  expect(said).toEqual(['the API server has not answered for 5 s: waiting for it']);
});

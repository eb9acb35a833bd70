import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { createNodePressure } from './pressure.ts';
import type { Threshold } from './thresholds.ts';

/** The threshold is met if `count` is 2^60, but not if it is 1: the disk has between 1 and 2^60 bytes available. */
const threshold = (count: number): Threshold => ({
  signal: 'nodefs.available',
  value: { count },
  graceSeconds: 0,
  hard: true,
});

test('the pressure of the node reports its conditions, and notifies its listeners only when they change', async () => {
  const timers = createVirtualTimers();
  const config = { thresholds: [threshold(1)], transitionMillis: 60_000, maxPodGraceSeconds: 0 };
  const pressure = await createNodePressure({ config, folders: { dataDir: tmpdir() }, timers });
  const changes: string[][] = [];
  pressure.onChange(() => changes.push([...pressure.conditions()]));
  expect([...pressure.conditions()]).toEqual([]);

  config.thresholds = [threshold(2 ** 60)];
  await pressure.look();
  await pressure.look();
  expect(changes).toEqual([['DiskPressure']]);

  config.thresholds = [threshold(1)];
  timers.advance(59_999);
  await pressure.look();
  expect(changes).toEqual([['DiskPressure']]);
  timers.advance(1);
  await pressure.look();
  expect(changes).toEqual([['DiskPressure'], []]);
});

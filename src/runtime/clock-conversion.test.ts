import { beforeEach, expect, it } from 'vitest';
import { createSteadyStamps, type SteadyStamps } from './clock-conversion.ts';
import type { ContainerObservation, PodObservation } from './runtime.ts';

const HOUR = 3_600_000;
let engine: number;
let ahead: number;
let stamps: SteadyStamps;
beforeEach(() => {
  engine = 1_000_000_000;
  ahead = 0;
  stamps = createSteadyStamps({ now: () => engine }, { now: () => engine + ahead });
});

const seen = (id: string, times: Partial<ContainerObservation>): PodObservation => ({
  sandboxes: [],
  containers: [{ id, createdAt: 999_990_000, ...times } as ContainerObservation],
});
const read = (id: string, times: Partial<ContainerObservation>): Partial<ContainerObservation> | undefined =>
  stamps.read('uid', seen(id, times)).containers[0];

it("the runtime's times are unchanged if the machine's clock is not set", () => {
  expect(read('a', { startedAt: 999_999_000 })).toMatchObject({ createdAt: 999_990_000, startedAt: 999_999_000 });
});

it.each([HOUR, -HOUR])(
  'a step of %d ms of the machine clock does not change times read before it, and is subtracted from later ones',
  (step) => {
    read('a', { startedAt: 999_999_000 });
    ahead = step;
    engine += 5_000;
    const ended = read('a', { startedAt: 999_999_000, finishedAt: engine + step - 10 });
    expect(ended).toMatchObject({ createdAt: 999_990_000, startedAt: 999_999_000, finishedAt: engine - 10 });
    expect(read('b', { createdAt: engine + step - 20 })).toMatchObject({ createdAt: engine - 20 });
  },
);

it('a runtime time in the future is replaced by the current time', () => {
  expect(read('a', { finishedAt: engine + HOUR })).toMatchObject({ finishedAt: engine });
});

it('readAll() forgets the times of containers that no longer exist', () => {
  read('a', {});
  stamps.readAll(new Map());
  ahead = HOUR;
  expect(read('a', { createdAt: engine + HOUR - 7 })).toMatchObject({ createdAt: engine - 7 });
});

it.each([
  [499, 0],
  [-499, 0],
  [500, 500],
  [-500, -500],
])('if the machine clock is %d ms ahead, %d ms are subtracted from a time of the runtime', (difference, subtracted) => {
  ahead = difference;
  expect(read('a', { createdAt: 999_990_000 })).toMatchObject({ createdAt: 999_990_000 - subtracted });
});

it('read() forgets the times of a Pod that has no sandbox and no container any more', () => {
  read('a', {});
  expect(stamps.read('uid', { sandboxes: [], containers: [] })).toEqual({ sandboxes: [], containers: [] });
  ahead = HOUR;
  expect(read('a', { createdAt: engine + HOUR - 7 })).toMatchObject({ createdAt: engine - 7 });
});

import { expect, test } from 'vitest';
import type { RuntimeStatus } from './responses.ts';
import { featuresOf, sandboxImageOf } from './status.ts';

const older: RuntimeStatus = { status: null, runtimeHandlers: [], features: null, info: {} };

test('featuresOf() returns undefined for an older runtime, which reports no features', () => {
  expect(featuresOf(older)).toBeUndefined();
});

test('featuresOf() returns the features of a newer runtime and of its handlers', () => {
  const handlers = [
    { name: '', features: { recursiveReadOnlyMounts: true } },
    { name: 'other', features: null },
  ];
  const status = { ...older, runtimeHandlers: handlers, features: { supplementalGroupsPolicy: true } };
  expect(featuresOf(status)).toEqual({
    supplementalGroupsPolicy: true,
    handlers: [
      { name: '', recursiveReadOnlyMounts: true },
      { name: 'other', recursiveReadOnlyMounts: false },
    ],
  });
  expect(featuresOf({ ...status, features: null })?.supplementalGroupsPolicy).toBe(false);
});

test.each([
  [{ config: '{"sandboxImage":"registry.example/pause:3"}' }, 'registry.example/pause:3'],
  [{ config: '{"sandboxImage":""}' }, undefined],
  [{ config: 'pause_image = "x"' }, undefined],
  [{ config: 'null' }, undefined],
  [{}, undefined],
])('sandboxImageOf() returns for the info %j the image %s', (info, image) => {
  expect(sandboxImageOf({ ...older, info: info as Record<string, string> })).toBe(image);
});

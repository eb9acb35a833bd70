import { expect, test } from 'vitest';
import type { RuntimeStatus } from './responses.ts';
import { featuresOf, sandboxImageOf } from './status.ts';

const older: RuntimeStatus = { status: null, runtimeHandlers: [], features: null, info: {} };

test('an older runtime reports no features', () => {
  expect(featuresOf(older)).toBeUndefined();
});

test('a newer runtime reports its own features and those of its handlers', () => {
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
])('the info %j has the sandbox image %s', (info, image) => {
  expect(sandboxImageOf({ ...older, info: info as Record<string, string> })).toBe(image);
});

import { expect, test } from 'vitest';
import type { Connection } from './connection.ts';
import type { RuntimeStatus } from './responses.ts';
import { featuresOf, notReady, sandboxImageOf } from './status.ts';

const older: RuntimeStatus = { status: null, runtimeHandlers: [], features: null, info: {} };

test('a runtime with deprecated settings is ready, and one without a network is not', async () => {
  const conditions = [
    { type: 'RuntimeReady', status: true, reason: '', message: '' },
    { type: 'NetworkReady', status: false, reason: 'NetworkPluginNotReady', message: 'no CNI' },
    { type: 'ContainerdHasNoDeprecationWarnings', status: false, reason: 'Deprecated', message: 'old' },
  ];
  const connection = { unary: async () => ({ ...older, status: { conditions } }) } as unknown as Connection;
  expect(await notReady(connection, new AbortController().signal)).toEqual([
    'NetworkReady is false: NetworkPluginNotReady: no CNI',
  ]);
});

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

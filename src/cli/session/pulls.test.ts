import { expect, test } from 'vitest';
import { type PullProgress, pullMessage } from '../../api/core/v1/pod/status/pull-progress.ts';
import type { ContainerStatus, Pod } from '../../api/generated/types.ts';
import { createPullReports } from './pulls.ts';

const MIB = 1024 * 1024;

/** `images`: the progress of a pull, or the ID of a pulled image, by image. */
function podOf(images: Record<string, PullProgress | string | undefined>): Pod {
  const statuses = Object.entries(images).map(([image, state], index): ContainerStatus => {
    const waiting = { reason: 'ContainerCreating', message: pullMessage(image, state as PullProgress) };
    const isPulled = typeof state === 'string';
    return {
      name: `c${index}`,
      image,
      imageID: isPulled ? state : '',
      ready: false,
      restartCount: 0,
      state: isPulled ? {} : { waiting },
    };
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: { containers: statuses.map(({ name, image }) => ({ name, image })) },
    status: { phase: 'Pending', containerStatuses: statuses },
  };
}

const at = (mebibytes: number): PullProgress => ({
  state: 'pulling',
  doneBytes: mebibytes * MIB,
  totalBytes: 40 * MIB,
});

function reportsOf(isShown: boolean, ...pods: Pod[]) {
  const [shown, said]: [string[], string[]] = [[], []];
  const report = createPullReports({ isShown, show: (text) => void shown.push(text) }, (line) => void said.push(line));
  for (const pod of pods) report([pod]);
  return { shown, said };
}

const LIFE = [
  podOf({ 'a:1': undefined, 'b:1': undefined }),
  podOf({ 'a:1': at(10), 'b:1': { state: 'waiting' } }),
  podOf({ 'a:1': at(20), 'b:1': { state: 'pulling' } }),
  podOf({ 'a:1': 'sha256:1', 'b:1': at(20) }),
  podOf({ 'a:1': 'sha256:1', 'b:1': undefined }),
];

test('a terminal shows the progress of all pulls in one line, until they end', () => {
  expect(reportsOf(true, ...LIFE)).toEqual({
    shown: ['', 'pulling a:1: 25% of 40 MiB', 'pulling a:1: 50% of 40 MiB, b:1', 'pulling b:1: 50% of 40 MiB', ''],
    said: [],
  });
});

test('without a terminal, the beginning and the end of each pull are a line, and a failed pull has no end', () => {
  expect(reportsOf(false, ...LIFE)).toEqual({ shown: [], said: ['pulling a:1', 'pulling b:1', 'pulled a:1'] });
});

test('a failed pull of a container that has run with another image has no end', () => {
  const changed = podOf({ 'a:2': at(10) });
  const failed = structuredClone(changed);
  for (const pod of [changed, failed])
    for (const status of pod.status?.containerStatuses ?? [])
      Object.assign(status, { image: 'a:1', imageID: 'sha256:1' });
  for (const status of failed.status?.containerStatuses ?? []) status.state = { waiting: { reason: 'ErrImagePull' } };
  expect(reportsOf(false, changed, failed).said).toEqual(['pulling a:2']);
});

import { expect, test } from 'vitest';
import { containerOf, defaulted, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { createPodWorkers, type PodHooks, type PodWorkersOptions } from './pod-workers.ts';
import type { Outcome, PodWorker } from './worker/ports.ts';

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const pod: Pod = defaulted(podOf({ containers: [containerOf('app')] }));

function agent(more: Partial<PodWorkersOptions> = {}) {
  const calls: string[] = [];
  const warnings: string[] = [];
  const stop = new AbortController();
  const workers = new Map<string, PodWorker>();
  const released = Promise.withResolvers<void>();
  const hooksOf = (part: string, release: () => Promise<void>): PodHooks => ({
    started: (_pod, removed) => calls.push(`${part} started${removed ? ' removed' : ''}`),
    observed: () => calls.push(`${part} observed`),
    cleared: () => calls.push(`${part} cleared`),
    ended: () => calls.push(`${part} ended`),
    release: () => {
      calls.push(`${part} release`);
      return release();
    },
    released: () => calls.push(`${part} released`),
  });
  const log = { ...silentLog, warn: (message: string) => warnings.push(message), child: () => silentLog };
  const start = createPodWorkers(workers, {
    timers: createVirtualTimers(),
    log,
    signal: stop.signal,
    node: { ips: ['192.0.2.1'], runtimeName: 'test' },
    outages: { of: () => ({}), end: () => undefined },
    journals: { read: () => ({ stops: {} }), keep: () => undefined },
    recorder: { record: () => undefined, written: () => undefined } as never,
    events: { event: () => undefined } as never,
    sourceOf: () => ({ writeStatus: async () => undefined }) as never,
    nodeEnd: () => undefined,
    lookAt: () => async () => {
      calls.push('look');
      return { sandboxes: [], containers: [] };
    },
    execute: async ({ kind }): Promise<Outcome> => {
      calls.push(kind);
      return kind === 'removeFiles' ? { volumes: 'gone' } : { volumes: 'unmounted' };
    },
    hooks: [hooksOf('one', () => Promise.reject(new Error('disk'))), hooksOf('two', () => released.promise)],
    ...more,
  });
  return { start, calls, warnings, workers, stop, released };
}

test('the hooks of a stage are called in order, and released after the release of all parts, even if one fails', async () => {
  const { start, calls, warnings, workers, released } = agent();
  start(pod, true);
  expect([...workers.keys()]).toEqual([uidOf(pod)]);
  await settled();
  const ended = ['one ended', 'two ended', 'one release', 'two release'];
  const begun = ['look', 'one started removed', 'two started removed', 'one observed', 'two observed'];
  expect(calls).toEqual([...begun, 'removeFiles', ...ended]);
  expect(workers.size).toBe(0);
  released.resolve();
  await settled();
  expect(calls.slice(-2)).toEqual(['one released', 'two released']);
  expect(warnings).toEqual(['files or groups of a Pod that has ended remain']);
});

test('cleared is called when the volumes of a Pod that is not deleted are unmounted', async () => {
  const { start, calls } = agent();
  start({ ...pod, status: { ...pod.status, phase: 'Failed' } }, false);
  await settled();
  expect(calls).toContain('unmountVolumes');
  expect(calls.filter((call) => call.endsWith('cleared'))).toEqual(['one cleared', 'two cleared']);
  const deleted = { deletionTimestamp: '2026-01-31T00:00:00Z', deletionGracePeriodSeconds: 0 };
  const other = agent();
  other.start({ ...pod, metadata: { ...pod.metadata, ...deleted } }, false);
  await settled();
  expect(other.calls.filter((call) => call.endsWith('cleared'))).toEqual([]);
});

test('a worker that starts after the end of the agent carries out no action', async () => {
  const { start, calls, stop } = agent();
  stop.abort();
  start(pod, true);
  await settled();
  expect(calls).toContain('look');
  expect(calls).not.toContain('removeFiles');
  expect(calls).not.toContain('one ended');
});

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Timers } from '../../platform/platform.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { createManifests, type Manifests } from './manifests.ts';

let root: string;
let stop: AbortController;
let timers: VirtualTimers;
/** The times of the timers that were set for 1 s or more. The timers that wait for a quiet folder after a change are shorter. */
let retries: number[];
let errors: string[];
let manifests: Manifests;
/** Resolves to the names of the Pods of the next read. */
let next: PromiseWithResolvers<string[]>;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-manifests-'));
  stop = new AbortController();
  timers = createVirtualTimers(0);
  [retries, errors] = [[], []];
  next = Promise.withResolvers();
  const recorded: Timers = {
    now: timers.now,
    at(time, callback) {
      if (time - timers.now() >= 1000) retries.push(time);
      return timers.at(time, callback);
    },
  };
  manifests = createManifests({
    folder: join(root, 'data/manifests'),
    nodeName: 'n',
    timers: recorded,
    log: { ...silentLog, error: (message) => void errors.push(message) },
    signal: stop.signal,
    found: ({ pods }) => next.resolve([...pods.keys()]),
  });
});
afterEach(() => {
  stop.abort();
  rmSync(root, { recursive: true });
});

const UNREADABLE = 'the manifests cannot be read';
/** The folder cannot be read, because its parent is a file. */
const startUnreadable = async (): Promise<void> => {
  writeFileSync(join(root, 'data'), '');
  await manifests.start();
  expect(errors).toContain(UNREADABLE);
};
const addManifest = (): void => {
  rmSync(join(root, 'data'));
  mkdirSync(join(root, 'data/manifests'), { recursive: true });
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'a', image: 'i' }] },
  };
  writeFileSync(join(root, 'data/manifests/web.yaml'), JSON.stringify(pod));
};

test('a folder that cannot be read is read again after 5 s, once for any number of requests', async () => {
  await startUnreadable();
  manifests.retry();
  manifests.retry();
  expect(retries).toEqual([5000]);
  addManifest();
  timers.advance(5000);
  expect(await next.promise).toEqual(['default/web-n']);
  manifests.retry();
  expect(retries).toEqual([5000, 10_000]);
});

test('a folder is not read again after the signal has aborted', async () => {
  await startUnreadable();
  let read = false;
  void next.promise.then(() => {
    read = true;
  });
  addManifest();
  stop.abort();
  manifests.retry();
  expect(retries).toEqual([5000]);
  expect(await timers.run(() => read, 60_000)).toBe(false);
});

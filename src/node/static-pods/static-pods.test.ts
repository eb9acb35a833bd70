import { chmodSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { silentLog } from '../../client/testing.ts';
import { inProcessClient } from '../../client/typed-client.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { systemTimers } from '../../platform/node.ts';
import type { Log, Platform } from '../../platform/platform.ts';
import type { ResourceBackend } from '../../ports/backend.ts';
import { readAll } from './manifests.ts';
import { createStaticPods, type StaticPods } from './static-pods.ts';
import { nextSteps } from './steps.ts';

const text = (name: string, image = 'busybox:1.28', more: object = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'app', image }], ...more },
  });

describe('readAll', () => {
  const read = (files: Parameters<typeof readAll>[0]) => readAll(files, 'node-1', 0);

  it('tells Pods from what says nothing', async () => {
    const { wanted, remarks } = await read([
      { name: 'a.yaml', text: text('web') },
      { name: 'b.yaml', text: 'bad' },
      { name: 'c', failure: 'it is not a regular file' },
      { name: 'd.yaml', text: text('odd', 'x', { colour: 'red' }) },
    ]);
    expect([...wanted.pods.keys()]).toEqual(['default/web-node-1', 'default/odd-node-1']);
    expect([...wanted.unreadable]).toEqual(['b.yaml', 'c']);
    expect([...remarks]).toEqual([
      ['b.yaml', { message: 'manifest skipped', reason: "couldn't parse as pod: it is not an object" }],
      ['c', { message: 'manifest skipped', reason: 'it is not a regular file' }],
      ['d.yaml', { message: 'manifest read with warnings', reason: 'unknown field "spec.colour"' }],
    ]);
  });

  it('of two files with one Pod the first counts', async () => {
    const { wanted, remarks } = await read([
      { name: 'a.yaml', text: text('web', 'a') },
      { name: 'b.yaml', text: text('web', 'b') },
    ]);
    expect(wanted.pods.get('default/web-node-1')?.file).toBe('a.yaml');
    expect(remarks.get('b.yaml')?.reason).toBe('the Pod default/web-node-1 is that of a.yaml');
  });
});

describe('nextSteps', async () => {
  const wantedOf = async (...files: Parameters<typeof readAll>[0]) => (await readAll(files, 'node-1', 0)).wanted;
  const first = { name: 'a.yaml', text: text('web') };
  const second = { name: 'a.yaml', text: text('web', 'other') };
  const bad = { name: 'a.yaml', text: 'bad' };
  const ending = (slots: Awaited<ReturnType<typeof wantedOf>>['pods']) =>
    new Map(
      [...slots].map(([name, { file, pod }]) => {
        const metadata = { ...pod.metadata, deletionTimestamp: '2026-01-31T00:00:00Z' };
        return [name, { file, pod: { ...pod, metadata } }];
      }),
    );
  const there = (await wantedOf(first)).pods;
  it.each<[string, [Parameters<typeof nextSteps>[0], Parameters<typeof nextSteps>[1]], string[]]>([
    ['nothing there, nothing wanted', [new Map(), await wantedOf()], []],
    ['a new file', [new Map(), await wantedOf(first)], ['begin']],
    ['the same file', [there, await wantedOf(first)], []],
    ['a changed file', [there, await wantedOf(second)], ['end']],
    ['a changed file while the old Pod ends', [ending(there), await wantedOf(second)], []],
    ['a removed file', [there, await wantedOf()], ['end']],
    ['a removed file whose Pod ends', [ending(there), await wantedOf()], []],
    ['a file that cannot be read any more', [there, await wantedOf(bad)], []],
    ['a file that came back while its Pod ends', [ending(there), await wantedOf(first)], []],
  ])('%s', (_, [slots, wanted], kinds) => {
    expect(nextSteps(slots, wanted, true).map(({ kind }) => kind)).toEqual(kinds);
  });

  const withStatus = (slots: typeof there, status: PodStatus) =>
    new Map([...slots].map(([name, { file, pod }]) => [name, { file, pod: { ...pod, status } }]));
  const shutDown = withStatus(there, { phase: 'Failed', reason: 'Terminated' });
  it.each<[string, Parameters<typeof nextSteps>, string[]]>([
    ['a Pod that a shutdown has ended', [shutDown, await wantedOf(first), true], ['end']],
    ['one whose end goes on', [ending(shutDown), await wantedOf(first), true], []],
    ['one whose file cannot be read', [shutDown, await wantedOf(bad), true], ['end']],
    ['a shutdown', [shutDown, await wantedOf(first), false], []],
    ['a shutdown and a new file', [new Map(), await wantedOf(first), false], []],
    ['a shutdown and a removed file', [there, await wantedOf(), false], ['end']],
    [
      'a Pod that was evicted',
      [withStatus(there, { phase: 'Failed', reason: 'Evicted' }), await wantedOf(first), true],
      [],
    ],
    ['a Pod that has failed by itself', [withStatus(there, { phase: 'Failed' }), await wantedOf(first), true], []],
    ['a Pod that has succeeded', [withStatus(there, { phase: 'Succeeded' }), await wantedOf(first), true], []],
    [
      'a Pod that was refused during a shutdown',
      [withStatus(there, { phase: 'Failed', reason: 'NodeShutdown' }), await wantedOf(first), true],
      ['end'],
    ],
  ])('a shutdown of the node: %s', (_, parameters, kinds) => {
    expect(nextSteps(...parameters).map(({ kind }) => kind)).toEqual(kinds);
  });

  it('a Pod whose manifest is changed is replaced, one whose manifest is removed is deleted', async () => {
    expect(nextSteps(there, await wantedOf(second), true).map(({ reason }) => reason)).toEqual(['Replaced']);
    expect(nextSteps(there, await wantedOf(), true).map(({ reason }) => reason)).toEqual([undefined]);
  });
});

/** An API that answers nothing but refusals. */
const refusing = new Proxy({} as ResourceBackend, {
  get: () => () => Promise.reject(serviceUnavailable('the API is down')),
});

describe('the folder', () => {
  let dataDir: string;
  let stop: AbortController;
  let logged: string[];
  /** What the workers were told, as `web-node-1 image`, with `ending` or `removed`. */
  let told: string[];
  let waiting: { count: number; resolve: () => void } | undefined;
  let shuttingDown: boolean;

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'lifepod-static-'));
    mkdirSync(join(dataDir, 'manifests'));
    stop = new AbortController();
    [logged, told] = [[], []];
    shuttingDown = false;
  });
  afterEach(() => {
    stop.abort();
    rmSync(dataDir, { recursive: true });
  });

  const log: Log = {
    ...silentLog,
    warn: (message, fields) =>
      void (message.startsWith('manifest') && logged.push(`${message}: ${fields?.['reason']}`)),
  };
  const file = (name: string): string => join(dataDir, 'manifests', name);
  const pods = new Map<string, Pod>();
  /** Resolves when the workers were told so many times in all. */
  const toldTimes = (count: number): Promise<void> =>
    new Promise((resolve) => {
      waiting = { count, resolve };
      if (told.length >= count) resolve();
    });

  function create(client: Client = inProcessClient(refusing), platform: Partial<Platform> = {}): StaticPods {
    return createStaticPods({
      client,
      nodeName: 'node-1',
      dataDir,
      timers: systemTimers(),
      log,
      signal: stop.signal,
      apply(pod, removed) {
        pods.set(pod.metadata.name, pod);
        const state = removed ? ' removed' : pod.metadata.deletionTimestamp === undefined ? '' : ' ending';
        told.push(`${pod.metadata.name} ${pod.spec?.containers[0]?.image}${state}`);
        if (waiting !== undefined && told.length >= waiting.count) waiting.resolve();
      },
      writeStatus: () => Promise.resolve(),
      isShuttingDown: () => shuttingDown,
      ...platform,
    });
  }
  const podOf = (name: string): Pod => pods.get(name) as Pod;
  const uidOf = (name: string): string => podOf(name).metadata.uid ?? '';
  const restarted = (): StaticPods => {
    stop.abort();
    stop = new AbortController();
    [logged, told] = [[], []];
    shuttingDown = false;
    return create();
  };
  const restart = (): Promise<void> => restarted().start();

  it('is private, and so is what is kept of its Pods', async () => {
    chmodSync(join(dataDir, 'manifests'), 0o755);
    writeFileSync(file('web.yaml'), text('web'));
    await create().start();
    for (const name of ['manifests', 'static-pods']) expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o700);
    const [record = ''] = readdirSync(join(dataDir, 'static-pods'));
    expect(statSync(join(dataDir, 'static-pods', record)).mode & 0o777).toBe(0o600);
  });

  it('is read at the start, hidden files and folders left out', async () => {
    mkdirSync(file('folder'));
    writeFileSync(file('.hidden.yaml'), text('hidden'));
    writeFileSync(file('b.yaml'), text('b'));
    writeFileSync(file('a.json'), text('a'));
    await create().start();
    expect(told).toEqual(['a-node-1 busybox:1.28', 'b-node-1 busybox:1.28']);
    expect(logged).toEqual(['manifest skipped: it is not a regular file']);
  });

  it('is followed: new, changed, moved in, removed', async () => {
    const staticPods = create();
    await staticPods.start();
    writeFileSync(file('web.yaml'), text('web', 'one'));
    await toldTimes(1);
    const { uid = '' } = podOf('web-node-1').metadata;
    expect(staticPods.owns(podOf('web-node-1'))).toBe(true);

    writeFileSync(join(dataDir, 'aside'), text('web', 'two'));
    renameSync(join(dataDir, 'aside'), file('web.yaml'));
    await toldTimes(2);
    expect(podOf('web-node-1').metadata).toMatchObject({ uid, deletionGracePeriodSeconds: 30, generation: 2 });
    await staticPods.finalize(podOf('web-node-1'));
    staticPods.ended(uid);
    await toldTimes(4);
    const { uid: newUid = '' } = podOf('web-node-1').metadata;
    expect(newUid).not.toBe(uid);

    rmSync(file('web.yaml'));
    await toldTimes(5);
    staticPods.ended(newUid);
    expect(staticPods.owns(podOf('web-node-1'))).toBe(false);
    expect(readdirSync(join(dataDir, 'static-pods'))).toEqual([]);
    expect(told).toEqual(
      ['', ' ending', ' removed']
        .map((state) => `web-node-1 one${state}`)
        .concat('web-node-1 two', 'web-node-1 two ending'),
    );
  });

  it('names a bad file once, changes nothing for it, and reads it when it is mended', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'one'));
    await staticPods.start();
    writeFileSync(file('web.yaml'), 'bad');
    writeFileSync(file('other.yaml'), text('other'));
    await toldTimes(2);
    expect(logged).toEqual(["manifest skipped: couldn't parse as pod: it is not an object"]);
    writeFileSync(file('web.yaml'), text('web', 'two'));
    await toldTimes(3);
    expect(told).toEqual(['web-node-1 one', 'other-node-1 busybox:1.28', 'web-node-1 one ending']);
    expect(logged).toHaveLength(1);
  });

  it('is made again where it is removed: its Pods end, and new files are read', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web'));
    await staticPods.start();
    rmSync(join(dataDir, 'manifests'), { recursive: true });
    await toldTimes(2);
    writeFileSync(file('other.yaml'), text('other'));
    await toldTimes(3);
    expect(told.slice(1)).toEqual(['web-node-1 busybox:1.28 ending', 'other-node-1 busybox:1.28']);
  });

  const status: PodStatus = { phase: 'Running', startTime: '2026-01-31T00:00:00Z' };

  it('keeps the status, and after a restart goes on with the same Pod', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web'));
    await staticPods.start();
    const { uid } = podOf('web-node-1').metadata;
    await staticPods.writeStatus(podOf('web-node-1'), status);
    await toldTimes(2);
    // The same again is no news.
    await staticPods.writeStatus(podOf('web-node-1'), structuredClone(status));
    const before = podOf('web-node-1');
    await restart();
    expect(told).toEqual(['web-node-1 busybox:1.28']);
    expect(podOf('web-node-1')).toEqual(before);
    expect(podOf('web-node-1')).toMatchObject({ metadata: { uid }, status });
  });

  it('ends, after a restart, what lost its file or was ending, and keeps what became unreadable', async () => {
    const staticPods = create();
    for (const name of ['lost', 'ending', 'unreadable']) writeFileSync(file(name), text(name, 'x'));
    await staticPods.start();
    rmSync(file('ending'));
    await toldTimes(4);
    const { deletionTimestamp } = podOf('ending-node-1').metadata;
    stop.abort();
    rmSync(file('lost'));
    writeFileSync(file('unreadable'), 'bad');
    await restart();
    await toldTimes(4);
    expect(told.sort()).toEqual([
      'ending-node-1 x ending',
      'lost-node-1 x',
      'lost-node-1 x ending',
      'unreadable-node-1 x',
    ]);
    expect(podOf('ending-node-1').metadata.deletionTimestamp).toBe(deletionTimestamp);
  });

  const shutDown: PodStatus = { ...status, phase: 'Failed', reason: 'Terminated' };
  /** The worker of web has nothing left to do for the Pod that is to end. */
  const lastOf = async (staticPods: StaticPods): Promise<void> => {
    await staticPods.finalize(podOf('web-node-1'));
    staticPods.ended(uidOf('web-node-1'));
  };
  const LIVES = ['', ' ending', ' removed', ''].map((state) => `web-node-1 x${state}`);

  it('a Pod that a shutdown has ended stays so until the next start: what is left of it ends, and it begins anew', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'x'));
    await staticPods.start();
    shuttingDown = true;
    await staticPods.writeStatus(podOf('web-node-1'), shutDown);
    await toldTimes(2);
    writeFileSync(file('other.yaml'), text('other', 'x'));
    const next = restarted();
    await next.start();
    await toldTimes(3);
    expect(told).toEqual(['web-node-1 x', 'web-node-1 x ending', 'other-node-1 x']);
    await lastOf(next);
    await toldTimes(5);
    expect(told.slice(3)).toEqual(['web-node-1 x removed', 'web-node-1 x']);
    expect(podOf('web-node-1').status).toEqual({ phase: 'Pending', qosClass: 'BestEffort' });
    expect(podOf('web-node-1').metadata).not.toHaveProperty('deletionTimestamp');
  });

  it('a Pod whose end by a shutdown goes on after the next start begins anew then', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'x'));
    await staticPods.start();
    await staticPods.writeStatus(podOf('web-node-1'), status);
    const next = restarted();
    await next.start();
    await next.writeStatus(podOf('web-node-1'), shutDown);
    await toldTimes(3);
    await lastOf(next);
    await toldTimes(5);
    expect(told).toEqual(['web-node-1 x', ...LIVES]);
    expect(podOf('web-node-1').status).toEqual({ phase: 'Pending', qosClass: 'BestEffort' });
  });

  it('a Pod that a shutdown has ended begins anew from its record where its file cannot be read', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'x'));
    await staticPods.start();
    await staticPods.writeStatus(podOf('web-node-1'), status);
    const { metadata } = podOf('web-node-1');
    writeFileSync(file('web.yaml'), 'bad');
    const next = restarted();
    await next.start();
    await next.writeStatus(podOf('web-node-1'), shutDown);
    await toldTimes(3);
    await lastOf(next);
    await toldTimes(5);
    expect(told).toEqual(['web-node-1 x', ...LIVES]);
    expect(podOf('web-node-1')).not.toHaveProperty('status');
    expect(podOf('web-node-1').metadata).toEqual(metadata);
    await restart();
    expect(podOf('web-node-1').metadata).toEqual(metadata);
  });

  it('a Pod that ends before the files have been read ends no other', async () => {
    const staticPods = create();
    for (const name of ['web', 'other']) writeFileSync(file(name), text(name, 'x'));
    await staticPods.start();
    rmSync(file('web'));
    await toldTimes(3);
    const next = restarted();
    const started = next.start();
    next.ended(uidOf('web-node-1'));
    await started;
    await toldTimes(1);
    expect(told).toEqual(['other-node-1 x']);
  });

  it('a record that is damaged is given up', async () => {
    mkdirSync(join(dataDir, 'static-pods'));
    writeFileSync(join(dataDir, 'static-pods', 'abc.json'), '{"pod":');
    await create().start();
    expect(told).toEqual([]);
    expect(readdirSync(join(dataDir, 'static-pods'))).toEqual([]);
  });

  it('a Pod with no grace period gets a second', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'x', { terminationGracePeriodSeconds: 0 }));
    await staticPods.start();
    rmSync(file('web.yaml'));
    await toldTimes(2);
    expect(podOf('web-node-1').metadata.deletionGracePeriodSeconds).toBe(1);
  });

  it('a Pod with defer containers whose manifest is changed has the reason Replaced', async () => {
    const defers = { deferContainers: [{ name: 'clean-up', image: 'busybox:1.28', timeoutSeconds: 1 }] };
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'x', defers));
    await staticPods.start();
    writeFileSync(file('web.yaml'), text('web', 'y', defers));
    await toldTimes(2);
    expect(podOf('web-node-1').status?.conditions).toMatchObject([
      { type: 'DeletionReason', status: 'True', reason: 'Replaced' },
    ]);
  });

  it('a disk that takes no record: a Pod begins when it does, and ends all the same', async () => {
    const warned = Promise.withResolvers<void>();
    const due = Promise.withResolvers<() => void>();
    const timers = systemTimers();
    const staticPods = create(inProcessClient(refusing), {
      log: { ...log, warn: () => warned.resolve() },
      timers: {
        ...timers,
        at: (time, callback) => {
          if (time - timers.now() < 1000) return timers.at(time, callback);
          due.resolve(callback);
          return { cancel: () => undefined };
        },
      },
    });
    await staticPods.start();
    const records = join(dataDir, 'static-pods');
    rmSync(records, { recursive: true });
    writeFileSync(file('a'), text('a', 'x'));
    await warned.promise;
    const tryAgain = await due.promise;
    expect(told).toEqual([]);
    mkdirSync(records);
    tryAgain();
    await toldTimes(1);
    expect(readdirSync(records)).toHaveLength(1);

    rmSync(records, { recursive: true });
    const ended = staticPods.endAll();
    await toldTimes(2);
    staticPods.ended(uidOf('a-node-1'));
    await ended;
    expect(told).toEqual(['a-node-1 x', 'a-node-1 x ending']);
  });

  it('a status that cannot be written down is not taken for written', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web'));
    await staticPods.start();
    rmSync(join(dataDir, 'static-pods'), { recursive: true });
    await expect(staticPods.writeStatus(podOf('web-node-1'), status)).rejects.toThrow('ENOENT');
    mkdirSync(join(dataDir, 'static-pods'));
    await staticPods.writeStatus(podOf('web-node-1'), status);
    await toldTimes(2);
    expect(podOf('web-node-1').status).toEqual(status);
  });

  it('ends them all, and begins none any more', async () => {
    const staticPods = create();
    writeFileSync(file('a'), text('a', 'x'));
    await staticPods.start();
    const ended = staticPods.endAll();
    writeFileSync(file('b'), text('b', 'x'));
    await toldTimes(2);
    let over = false;
    void ended.then(() => {
      over = true;
    });
    staticPods.ended(uidOf('a-node-1'));
    await ended;
    expect(over).toBe(true);
    expect(told).toEqual(['a-node-1 x', 'a-node-1 x ending']);
  });
});

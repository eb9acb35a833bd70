import { chmodSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { clientOf } from '../../client/typed-client.ts';
import { uidOf } from '../../machinery/meta.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { systemTimers } from '../../platform/node-js.ts';
import type { Log, Platform, Timers } from '../../platform/platform.ts';
import { silentLog } from '../../platform/silent-log.ts';
import type { ResourceApi } from '../../ports/backend.ts';
import { readAll } from './manifests.ts';
import { nextSteps } from './starts-and-ends.ts';
import { createStaticPods, type StaticPods } from './static-pods.ts';

const text = (name: string, image = 'busybox:1.28', more: object = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'app', image }], ...more },
  });

describe('readAll', () => {
  const read = (files: Parameters<typeof readAll>[0]) => readAll(files, 'node-1', 0);

  it('readAll separates Pods from unreadable files, and reports the reasons except for an empty file', async () => {
    const { wanted, remarks } = await read([
      { name: 'a.yaml', text: text('web') },
      { name: 'b.yaml', text: 'bad' },
      { name: 'c', failure: 'it is not a regular file' },
      { name: 'd.yaml', text: text('odd', 'x', { colour: 'red' }) },
      { name: 'e.yaml', text: '\n' },
    ]);
    expect([...wanted.pods.keys()]).toEqual(['default/web-node-1', 'default/odd-node-1']);
    expect([...wanted.unreadable]).toEqual(['b.yaml', 'c', 'e.yaml']);
    expect([...remarks]).toEqual([
      ['b.yaml', { message: 'manifest skipped', reason: "couldn't parse as pod: it is not an object" }],
      ['c', { message: 'manifest skipped', reason: 'it is not a regular file' }],
      [
        'd.yaml',
        {
          message: 'manifest read with warnings',
          reason: 'unknown field "spec.colour"',
          ignored: 'unknown field "spec.colour"',
        },
      ],
    ]);
  });

  it('readAll uses the first of two files with the same Pod', async () => {
    const { wanted, remarks } = await read([
      { name: 'a.yaml', text: text('web', 'a') },
      { name: 'b.yaml', text: text('web', 'b') },
    ]);
    expect(wanted.pods.get('default/web-node-1')?.file).toBe('a.yaml');
    expect(remarks.get('b.yaml')?.reason).toBe('the Pod default/web-node-1 is already defined by a.yaml');
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
  const running = (await wantedOf(first)).pods;
  it.each<[string, [Parameters<typeof nextSteps>[0], Parameters<typeof nextSteps>[1]], string[]]>([
    ['no file and no Pod', [new Map(), await wantedOf()], []],
    ['a new file', [new Map(), await wantedOf(first)], ['begin']],
    ['an unchanged file', [running, await wantedOf(first)], []],
    ['a changed file', [running, await wantedOf(second)], ['end']],
    ['a changed file while the old Pod ends', [ending(running), await wantedOf(second)], []],
    ['a removed file', [running, await wantedOf()], ['end']],
    ['a removed file whose Pod ends', [ending(running), await wantedOf()], []],
    ['a file that has become unreadable', [running, await wantedOf(bad)], []],
    ['a file that has been emptied', [running, await wantedOf({ name: 'a.yaml', text: '' })], []],
    ['a file that is restored while its Pod ends', [ending(running), await wantedOf(first)], []],
  ])('nextSteps returns the steps for %s', (_, [slots, wanted], kinds) => {
    expect(nextSteps(slots, wanted, true).map(({ kind }) => kind)).toEqual(kinds);
  });

  const withStatus = (slots: typeof running, status: PodStatus) =>
    new Map([...slots].map(([name, { file, pod }]) => [name, { file, pod: { ...pod, status } }]));
  const shutDown = withStatus(running, { phase: 'Failed', reason: 'Terminated' });
  it.each<[string, Parameters<typeof nextSteps>, string[]]>([
    ['a Pod that a previous shutdown has ended', [shutDown, await wantedOf(first), true], ['end']],
    [
      'a Pod that a previous shutdown has ended and that is still ending',
      [ending(shutDown), await wantedOf(first), true],
      [],
    ],
    [
      'a Pod that a previous shutdown has ended and whose file cannot be read',
      [shutDown, await wantedOf(bad), true],
      ['end'],
    ],
    ['an ended Pod during a shutdown', [shutDown, await wantedOf(first), false], []],
    ['a new file during a shutdown', [new Map(), await wantedOf(first), false], []],
    ['a removed file during a shutdown', [running, await wantedOf(), false], ['end']],
    [
      'a Pod that was evicted',
      [withStatus(running, { phase: 'Failed', reason: 'Evicted' }), await wantedOf(first), true],
      [],
    ],
    ['a Pod that has failed on its own', [withStatus(running, { phase: 'Failed' }), await wantedOf(first), true], []],
    ['a Pod that has succeeded', [withStatus(running, { phase: 'Succeeded' }), await wantedOf(first), true], []],
    [
      'a Pod that was refused during a shutdown',
      [withStatus(running, { phase: 'Failed', reason: 'NodeShutdown' }), await wantedOf(first), true],
      ['end'],
    ],
  ])('nextSteps returns the steps for %s', (_, parameters, kinds) => {
    expect(nextSteps(...parameters).map(({ kind }) => kind)).toEqual(kinds);
  });

  it('nextSteps gives the reason Replaced to a Pod whose manifest has changed, and none to a removed one', async () => {
    expect(nextSteps(running, await wantedOf(second), true).map(({ reason }) => reason)).toEqual(['Replaced']);
    expect(nextSteps(running, await wantedOf(), true).map(({ reason }) => reason)).toEqual([undefined]);
  });
});

const refusing = new Proxy({} as ResourceApi, {
  get: () => () => Promise.reject(serviceUnavailable('the API is down')),
});

describe('static Pods', () => {
  let dataDir: string;
  let stop: AbortController;
  let logged: string[];
  /** The calls of apply() as `NAME IMAGE`, followed by ` removed` if the Pod is removed, or ` ending` if it is only terminating. */
  let applied: string[];
  let waiting: { count: number; resolve: () => void } | undefined;
  let shuttingDown: boolean;

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'lifepod-static-'));
    mkdirSync(join(dataDir, 'manifests'));
    stop = new AbortController();
    [logged, applied] = [[], []];
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
  const appliedTimes = (count: number): Promise<void> =>
    new Promise((resolve) => {
      waiting = { count, resolve };
      if (applied.length >= count) resolve();
    });

  function create(client: Client = clientOf(refusing), platform: Partial<Platform> = {}): StaticPods {
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
        applied.push(`${pod.metadata.name} ${pod.spec?.containers[0]?.image}${state}`);
        if (waiting !== undefined && applied.length >= waiting.count) waiting.resolve();
      },
      writeStatus: () => Promise.resolve(),
      isShuttingDown: () => shuttingDown,
      ...platform,
    });
  }
  const podOf = (name: string): Pod => pods.get(name) as Pod;
  const uidNamed = (name: string): string => uidOf(podOf(name));
  const restarted = (platform: Partial<Platform> = {}): StaticPods => {
    stop.abort();
    stop = new AbortController();
    [logged, applied] = [[], []];
    shuttingDown = false;
    return create(undefined, platform);
  };
  const restart = (): Promise<void> => restarted().start();

  it('the folder of manifests and the records of its Pods are private', async () => {
    chmodSync(join(dataDir, 'manifests'), 0o755);
    writeFileSync(file('web.yaml'), text('web'));
    await create().start();
    for (const name of ['manifests', 'static-pods']) expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o700);
    const [record = ''] = readdirSync(join(dataDir, 'static-pods'));
    expect(statSync(join(dataDir, 'static-pods', record)).mode & 0o777).toBe(0o600);
  });

  it('the folder is read at the start, without hidden files and folders', async () => {
    mkdirSync(file('folder'));
    writeFileSync(file('.hidden.yaml'), text('hidden'));
    writeFileSync(file('b.yaml'), text('b'));
    writeFileSync(file('a.json'), text('a'));
    await create().start();
    expect(applied).toEqual(['a-node-1 busybox:1.28', 'b-node-1 busybox:1.28']);
    expect(logged).toEqual(['manifest skipped: it is not a regular file']);
  });

  it('new, changed, renamed and removed manifests take effect while the node runs', async () => {
    const staticPods = create();
    await staticPods.start();
    writeFileSync(file('web.yaml'), text('web', 'one'));
    await appliedTimes(1);
    const uid = uidNamed('web-node-1');
    expect(staticPods.owns(podOf('web-node-1'))).toBe(true);

    writeFileSync(join(dataDir, 'aside'), text('web', 'two'));
    renameSync(join(dataDir, 'aside'), file('web.yaml'));
    await appliedTimes(2);
    expect(podOf('web-node-1').metadata).toMatchObject({ uid, deletionGracePeriodSeconds: 30, generation: 2 });
    await staticPods.finalize(podOf('web-node-1'));
    staticPods.ended(uid);
    await appliedTimes(4);
    const newUid = uidNamed('web-node-1');
    expect(newUid).not.toBe(uid);

    rmSync(file('web.yaml'));
    await appliedTimes(5);
    staticPods.ended(newUid);
    expect(staticPods.owns(podOf('web-node-1'))).toBe(false);
    expect(readdirSync(join(dataDir, 'static-pods'))).toEqual([]);
    expect(applied).toEqual(
      ['', ' ending', ' removed']
        .map((state) => `web-node-1 one${state}`)
        .concat('web-node-1 two', 'web-node-1 two ending'),
    );
  });

  it('an invalid manifest is reported once and changes nothing until it is corrected', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'one'));
    await staticPods.start();
    writeFileSync(file('web.yaml'), 'bad');
    writeFileSync(file('other.yaml'), text('other'));
    await appliedTimes(2);
    expect(logged).toEqual(["manifest skipped: couldn't parse as pod: it is not an object"]);
    writeFileSync(file('web.yaml'), text('web', 'two'));
    await appliedTimes(3);
    expect(applied).toEqual(['web-node-1 one', 'other-node-1 busybox:1.28', 'web-node-1 one ending']);
    expect(logged).toHaveLength(1);
  });

  it('a removed folder is created again: its Pods end, and new manifests are read', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web'));
    await staticPods.start();
    rmSync(join(dataDir, 'manifests'), { recursive: true });
    await appliedTimes(2);
    writeFileSync(file('other.yaml'), text('other'));
    await appliedTimes(3);
    expect(applied.slice(1)).toEqual(['web-node-1 busybox:1.28 ending', 'other-node-1 busybox:1.28']);
  });

  const status: PodStatus = { phase: 'Running', startTime: '2026-01-31T00:00:00Z' };

  it('a static Pod continues with its UID and status after a restart of the engine', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web'));
    await staticPods.start();
    const { uid } = podOf('web-node-1').metadata;
    await staticPods.writeStatus(podOf('web-node-1'), status);
    await appliedTimes(2);
    // Writing an equal status again has no effect.
    await staticPods.writeStatus(podOf('web-node-1'), structuredClone(status));
    const before = podOf('web-node-1');
    await restart();
    expect(applied).toEqual(['web-node-1 busybox:1.28']);
    expect(podOf('web-node-1')).toEqual(before);
    expect(podOf('web-node-1')).toMatchObject({ metadata: { uid }, status });
  });

  it('after a restart, Pods whose manifest was removed end, and Pods whose manifest became unreadable continue', async () => {
    const staticPods = create();
    for (const name of ['lost', 'ending', 'unreadable']) writeFileSync(file(name), text(name, 'x'));
    await staticPods.start();
    rmSync(file('ending'));
    await appliedTimes(4);
    const { deletionTimestamp } = podOf('ending-node-1').metadata;
    stop.abort();
    rmSync(file('lost'));
    writeFileSync(file('unreadable'), 'bad');
    await restart();
    await appliedTimes(4);
    expect(applied.sort()).toEqual([
      'ending-node-1 x ending',
      'lost-node-1 x',
      'lost-node-1 x ending',
      'unreadable-node-1 x',
    ]);
    expect(podOf('ending-node-1').metadata.deletionTimestamp).toBe(deletionTimestamp);
  });

  const shutDown: PodStatus = { ...status, phase: 'Failed', reason: 'Terminated' };
  /** Acts as the worker of `web` that completes the termination of its Pod. */
  const finish = async (staticPods: StaticPods): Promise<void> => {
    await staticPods.finalize(podOf('web-node-1'));
    staticPods.ended(uidNamed('web-node-1'));
  };
  const LIVES = ['', ' ending', ' removed', ''].map((state) => `web-node-1 x${state}`);

  it('a Pod that a shutdown has ended is removed at the next start, and then starts again', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'x'));
    await staticPods.start();
    shuttingDown = true;
    await staticPods.writeStatus(podOf('web-node-1'), shutDown);
    await appliedTimes(2);
    writeFileSync(file('other.yaml'), text('other', 'x'));
    const next = restarted();
    await next.start();
    await appliedTimes(3);
    expect(applied).toEqual(['web-node-1 x', 'web-node-1 x ending', 'other-node-1 x']);
    await finish(next);
    await appliedTimes(5);
    expect(applied.slice(3)).toEqual(['web-node-1 x removed', 'web-node-1 x']);
    expect(podOf('web-node-1').status).toEqual({ phase: 'Pending', qosClass: 'BestEffort' });
    expect(podOf('web-node-1').metadata).not.toHaveProperty('deletionTimestamp');
  });

  it('each Pod of a manifest has its own time of creation, which a restart of the engine keeps', async () => {
    const clock = { now: Date.parse('2026-01-31T00:00:00Z') };
    const timers: Timers = { ...systemTimers(), now: () => clock.now };
    const created = (): string | undefined => podOf('web-node-1').metadata.creationTimestamp;
    const staticPods = create(undefined, { timers });
    writeFileSync(file('web.yaml'), text('web', 'x'));
    await staticPods.start();
    expect(created()).toBe('2026-01-31T00:00:00Z');
    await staticPods.writeStatus(podOf('web-node-1'), shutDown);
    await appliedTimes(3);
    clock.now += 60_000;
    await finish(staticPods);
    await appliedTimes(5);
    expect(created()).toBe('2026-01-31T00:01:00Z');
    clock.now += 60_000;
    await restarted({ timers }).start();
    expect(created()).toBe('2026-01-31T00:01:00Z');
  });

  it('a Pod whose termination by a shutdown continues after the next start starts again afterwards', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'x'));
    await staticPods.start();
    await staticPods.writeStatus(podOf('web-node-1'), status);
    const next = restarted();
    await next.start();
    await next.writeStatus(podOf('web-node-1'), shutDown);
    await appliedTimes(3);
    await finish(next);
    await appliedTimes(5);
    expect(applied).toEqual(['web-node-1 x', ...LIVES]);
    expect(podOf('web-node-1').status).toEqual({ phase: 'Pending', qosClass: 'BestEffort' });
  });

  it('a Pod that a shutdown has ended starts again from its record if its manifest cannot be read', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'x'));
    await staticPods.start();
    await staticPods.writeStatus(podOf('web-node-1'), status);
    const { metadata } = podOf('web-node-1');
    writeFileSync(file('web.yaml'), 'bad');
    const next = restarted();
    await next.start();
    await next.writeStatus(podOf('web-node-1'), shutDown);
    await appliedTimes(3);
    await finish(next);
    await appliedTimes(5);
    expect(applied).toEqual(['web-node-1 x', ...LIVES]);
    expect(podOf('web-node-1')).not.toHaveProperty('status');
    expect(podOf('web-node-1').metadata).toEqual(metadata);
    await restart();
    expect(podOf('web-node-1').metadata).toEqual(metadata);
  });

  /** Starts an engine again with a Pod that a shutdown has ended, and whose manifest cannot be read. Resolves when the Pod ends. */
  const endedByShutdown = async (platform: Partial<Platform> = {}): Promise<StaticPods> => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'x'));
    await staticPods.start();
    writeFileSync(file('web.yaml'), 'bad');
    const next = restarted(platform);
    await next.start();
    await next.writeStatus(podOf('web-node-1'), shutDown);
    await appliedTimes(3);
    return next;
  };

  it('a Pod that a shutdown has ended does not start again while the node ends its Pods or shuts down', async () => {
    const ending = await endedByShutdown();
    ending.endAll();
    await finish(ending);
    await Promise.resolve();
    expect(applied).toEqual(['web-node-1 x', ...LIVES.slice(0, 3)]);

    const shutting = await endedByShutdown();
    shuttingDown = true;
    await finish(shutting);
    await Promise.resolve();
    expect(applied).toEqual(['web-node-1 x', ...LIVES.slice(0, 3)]);
  });

  it('a Pod that a shutdown has ended does not start again if another manifest defines a Pod of its name', async () => {
    const staticPods = await endedByShutdown();
    writeFileSync(file('other.yaml'), text('web', 'y'));
    writeFileSync(file('last.yaml'), text('last', 'y'));
    await appliedTimes(4);
    await finish(staticPods);
    await appliedTimes(6);
    expect(applied.slice(3)).toEqual(['last-node-1 y', 'web-node-1 x removed', 'web-node-1 y']);
    expect(staticPods.owns(podOf('web-node-1'))).toBe(true);
  });

  it('a Pod that a shutdown has ended and whose record cannot be written starts again as soon as it can be', async () => {
    const due = Promise.withResolvers<() => void>();
    const timers = systemTimers();
    const retried: Timers = {
      ...timers,
      at(time, callback) {
        if (time - timers.now() < 1000) return timers.at(time, callback);
        due.resolve(callback);
        return { cancel: () => undefined };
      },
    };
    const staticPods = await endedByShutdown({ timers: retried });
    const records = join(dataDir, 'static-pods');
    rmSync(records, { recursive: true });
    await finish(staticPods);
    const retry = await due.promise;
    expect(applied).toHaveLength(4);
    mkdirSync(records);
    retry();
    await appliedTimes(5);
    expect(applied).toEqual(['web-node-1 x', ...LIVES]);
    expect(readdirSync(records)).toHaveLength(1);
  });

  it('a Pod that ends before the manifests have been read does not affect other Pods', async () => {
    const staticPods = create();
    for (const name of ['web', 'other']) writeFileSync(file(name), text(name, 'x'));
    await staticPods.start();
    rmSync(file('web'));
    await appliedTimes(3);
    const next = restarted();
    const started = next.start();
    next.ended(uidNamed('web-node-1'));
    await started;
    await appliedTimes(1);
    expect(applied).toEqual(['other-node-1 x']);
  });

  it('a damaged record is deleted', async () => {
    mkdirSync(join(dataDir, 'static-pods'));
    writeFileSync(join(dataDir, 'static-pods', 'abc.json'), '{"pod":');
    await create().start();
    expect(applied).toEqual([]);
    expect(readdirSync(join(dataDir, 'static-pods'))).toEqual([]);
  });

  it('a static Pod with a grace period of 0 gets one second', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'x', { terminationGracePeriodSeconds: 0 }));
    await staticPods.start();
    rmSync(file('web.yaml'));
    await appliedTimes(2);
    expect(podOf('web-node-1').metadata.deletionGracePeriodSeconds).toBe(1);
  });

  it('a static Pod with defer containers whose manifest has changed terminates with the reason Replaced', async () => {
    const defers = { deferContainers: [{ name: 'clean-up', image: 'busybox:1.28', timeoutSeconds: 1 }] };
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web', 'x', defers));
    await staticPods.start();
    writeFileSync(file('web.yaml'), text('web', 'y', defers));
    await appliedTimes(2);
    expect(podOf('web-node-1').status?.conditions).toMatchObject([
      { type: 'DeletionReason', status: 'True', reason: 'Replaced' },
    ]);
  });

  it('if the disk is full, a new Pod starts only when its record can be written, but a Pod can be terminated without one', async () => {
    const warned = Promise.withResolvers<void>();
    const due = Promise.withResolvers<() => void>();
    const timers = systemTimers();
    const staticPods = create(clientOf(refusing), {
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
    const retry = await due.promise;
    expect(applied).toEqual([]);
    mkdirSync(records);
    retry();
    await appliedTimes(1);
    expect(readdirSync(records)).toHaveLength(1);

    rmSync(records, { recursive: true });
    staticPods.endAll();
    await appliedTimes(2);
    staticPods.ended(uidNamed('a-node-1'));
    await Promise.resolve();
    expect(applied).toEqual(['a-node-1 x', 'a-node-1 x ending']);
  });

  it('a status that could not be stored is stored on the next attempt', async () => {
    const staticPods = create();
    writeFileSync(file('web.yaml'), text('web'));
    await staticPods.start();
    rmSync(join(dataDir, 'static-pods'), { recursive: true });
    await expect(staticPods.writeStatus(podOf('web-node-1'), status)).rejects.toThrow('ENOENT');
    mkdirSync(join(dataDir, 'static-pods'));
    await staticPods.writeStatus(podOf('web-node-1'), status);
    await appliedTimes(2);
    expect(podOf('web-node-1').status).toEqual(status);
  });

  it('endAll() ends all static Pods, and no new ones start afterwards', async () => {
    const staticPods = create();
    writeFileSync(file('a'), text('a', 'x'));
    await staticPods.start();
    staticPods.endAll();
    writeFileSync(file('b'), text('b', 'x'));
    await appliedTimes(2);
    staticPods.ended(uidNamed('a-node-1'));
    await Promise.resolve();
    expect(applied).toEqual(['a-node-1 x', 'a-node-1 x ending']);
  });

  it('runAll() withdraws endAll(): an ended static Pod starts again, and one that is ending when it has ended', async () => {
    const staticPods = create();
    for (const name of ['a', 'b']) writeFileSync(file(name), text(name, 'x'));
    await staticPods.start();
    staticPods.endAll();
    await appliedTimes(4);
    staticPods.ended(uidNamed('a-node-1'));
    staticPods.runAll();
    await appliedTimes(5);
    expect(applied.slice(4)).toEqual(['a-node-1 x']);
    staticPods.ended(uidNamed('b-node-1'));
    await appliedTimes(6);
    expect(applied.slice(4)).toEqual(['a-node-1 x', 'b-node-1 x']);
  });

  it('endAll() may be called again with a shorter grace period', async () => {
    const staticPods = create();
    writeFileSync(file('a'), text('a', 'x'));
    await staticPods.start();
    staticPods.endAll(20);
    await appliedTimes(2);
    expect(podOf('a-node-1').metadata.deletionGracePeriodSeconds).toBe(20);
    staticPods.endAll(1);
    await appliedTimes(3);
    expect(podOf('a-node-1').metadata.deletionGracePeriodSeconds).toBe(1);
  });
});

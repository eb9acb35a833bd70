import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MIRROR_ANNOTATION } from '../../api/core/v1/pod/mirror.ts';
import type { Pod } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import { createInformer } from '../../client/informer.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { uidOf } from '../../machinery/meta.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { silentLog } from '../../platform/silent-log.ts';
import type { NodeConnection } from '../../ports/node-connection.ts';
import { createMirrors, type Mirrors, throughMirrors } from './mirrors.ts';

const NAME = 'default/web-node-1';

const staticPod = (uid: string, more: Partial<Pod> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-node-1', namespace: 'default', uid, annotations: { note: 'x' }, finalizers: ['a/b'] },
  spec: { nodeName: 'node-1', containers: [{ name: 'app', image: 'x' }] },
  status: { phase: 'Pending' },
  ...more,
});

let backend: RegistryBackend;
let stop: AbortController;
let statics: Map<string, Pod>;
let mirrors: Mirrors;
let written: string[];
let waiters: { met: () => boolean; resolve: () => void }[];

const happened = (): void => {
  for (const { met, resolve } of waiters) if (met()) resolve();
};
const until = (met: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    waiters.push({ met, resolve });
    happened();
  });
const stored = (): Pod[] => backend.objects(PODS) as Pod[];
const mirrorOf = (uid: string): Pod | undefined =>
  stored().find(({ metadata }) => metadata.annotations?.[MIRROR_ANNOTATION] === uid);

async function start(existing: Pod[] = []): Promise<void> {
  const options = { timers: systemTimers(), log: silentLog, signal: stop.signal };
  const client = clientOf(backend);
  await backend.set(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' } });
  for (const pod of existing) await backend.set(PODS, pod);
  mirrors = createMirrors({
    ...options,
    client,
    nodeName: 'node-1',
    podOf: (fullName) => statics.get(fullName),
    async writeStatus(mirror, status) {
      written.push(`${mirror.metadata.annotations?.[MIRROR_ANNOTATION]} ${status.phase}`);
      happened();
    },
  });
  const seen = (pod: Pod, removed: boolean): void => {
    if (pod.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined) mirrors.seen(pod, removed);
    happened();
  };
  const informer = createInformer<Pod>(
    client.resource<Pod>(PODS),
    { ...options, fieldSelector: 'spec.nodeName=node-1' },
    { added: (pod) => seen(pod, false), updated: (pod) => seen(pod, false), deleted: (pod) => seen(pod, true) },
  );
  await informer.synced;
}
function run(pod: Pod | undefined): void {
  if (pod === undefined) statics.delete(NAME);
  else statics.set(NAME, pod);
  mirrors.changed(NAME);
}

beforeEach(async () => {
  backend = await registryBackend();
  stop = new AbortController();
  statics = new Map();
  written = [];
  waiters = [];
});
afterEach(() => stop.abort());

describe('mirrors', () => {
  it('a mirror shows the static Pod as the node has it, and is owned by the node', async () => {
    await start();
    run(staticPod('s1'));
    await until(() => written.length === 1);
    const node = await backend.get(NODES, undefined, 'node-1');
    expect(mirrorOf('s1')).toMatchObject({
      metadata: {
        annotations: { note: 'x', [MIRROR_ANNOTATION]: 's1' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-1', uid: node.metadata.uid, controller: true }],
      },
      spec: { nodeName: 'node-1', containers: [{ name: 'app', image: 'x' }] },
    });
    expect(mirrorOf('s1')?.metadata.finalizers).toBeUndefined();
    const uid = uidOf(mirrorOf('s1') as Pod);
    expect(uid).not.toBe('s1');
    expect(mirrors.mirrored(uid)).toBe('s1');
    expect(mirrors.mirrored('s1')).toBeUndefined();
  });

  it('each status of a static Pod is written to its mirror once', async () => {
    await start();
    run(staticPod('s1'));
    run(staticPod('s1'));
    await until(() => written.length === 1);
    run(staticPod('s1', { status: { phase: 'Running' } }));
    await until(() => written.length === 2);
    run(staticPod('s1', { status: { phase: 'Running' } }));
    run(staticPod('s1', { status: { phase: 'Succeeded' } }));
    await until(() => written.length === 3);
    expect(written).toEqual(['s1 Pending', 's1 Running', 's1 Succeeded']);
  });

  it('a mirror that is deleted, or terminates while its Pod runs, is created again with its status', async () => {
    await start();
    run(staticPod('s1'));
    await until(() => written.length === 1);
    const before = mirrorOf('s1')?.metadata.uid;
    await backend.remove(PODS, 'default', 'web-node-1');
    await until(() => written.length === 2);
    expect(mirrorOf('s1')?.metadata.uid).not.toBe(before);

    await backend.delete(PODS, 'default', 'web-node-1', { gracePeriodSeconds: 30 });
    await until(() => written.length === 3);
    expect(mirrorOf('s1')?.metadata.deletionTimestamp).toBeUndefined();
  });

  it('a mirror is replaced and deleted together with its static Pod', async () => {
    await start();
    run(staticPod('s1'));
    await until(() => written.length === 1);
    run(staticPod('s2'));
    await until(() => written.length === 2);
    expect(stored().map(({ metadata }) => metadata.annotations?.[MIRROR_ANNOTATION])).toEqual(['s2']);
    run(undefined);
    await until(() => stored().length === 0);
  });

  it('a static Pod that has ended and is being removed gets no new mirror', async () => {
    await start();
    const deleted = { deletionTimestamp: '2026-01-31T00:00:30Z', deletionGracePeriodSeconds: 30 };
    const ended = staticPod('s1', { status: { phase: 'Failed' } });
    run({ ...ended, metadata: { ...ended.metadata, ...deleted } });
    const other = staticPod('s2');
    const name = 'other-node-1';
    statics.set(`default/${name}`, { ...other, metadata: { ...other.metadata, name } });
    mirrors.changed(`default/${name}`);
    await until(() => written.length === 1);
    expect(written).toEqual(['s2 Pending']);
    expect(mirrorOf('s1')).toBeUndefined();
  });

  it('a mirror of a static Pod that no longer exists is deleted when the node sees it', async () => {
    const { metadata, ...rest } = staticPod('s0');
    const left = { ...metadata, uid: undefined, finalizers: undefined, annotations: { [MIRROR_ANNOTATION]: 's0' } };
    await start([{ ...rest, metadata: left }]);
    await until(() => stored().length === 0);
  });

  it('a mirror waits while another Pod has its name, and does not change that Pod', async () => {
    const metadata = { name: 'web-node-1', namespace: 'default' };
    await start([{ apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'other', image: 'x' }] } }]);
    run(staticPod('s1'));
    const tries = (): number => backend.calls.filter((call) => call === 'create pods default/web-node-1').length;
    await new Promise<void>((resolve) => {
      const { get } = backend;
      backend.get = async (...args) => {
        if (tries() >= 2) resolve();
        return get(...args);
      };
    });
    expect(stored().map(({ spec }) => spec?.containers[0]?.name)).toEqual(['other']);
    await backend.remove(PODS, 'default', 'web-node-1');
    await until(() => written.length === 1);
    expect(mirrorOf('s1')).toBeDefined();
  });

  it('a mirror is created once the API answers again', async () => {
    await start();
    for (let time = 0; time < 3; time++) backend.failNext('create pods', serviceUnavailable('down'));
    run(staticPod('s1'));
    await until(() => written.length === 1);
    expect(mirrorOf('s1')).toBeDefined();
  });
});

it('throughMirrors() finds the static Pod of a stream by the UID of the mirror', async () => {
  const asked: string[] = [];
  const note = (verb: string) => (pod: { uid: string }) => {
    asked.push(`${verb} ${pod.uid}`);
    return undefined as never;
  };
  const node: NodeConnection = {
    logs: note('logs'),
    exec: note('exec'),
    execTurn: async () => () => undefined,
    attach: note('attach'),
    portForward: note('portForward'),
  };
  const connection = throughMirrors(node, (uid) => (uid === 'm1' ? 's1' : uid));
  const { signal } = new AbortController();
  const streams = { stdin: false, stdout: true, stderr: true, tty: false };
  for (const uid of ['m1', 'p1']) {
    const pod = { namespace: 'default', name: 'web', uid };
    connection.logs(pod, 'app', {}, signal);
    void connection.exec(pod, 'app', { ...streams, command: [] }, signal);
    void connection.attach(pod, 'app', streams, signal);
    void connection.portForward(pod, [], signal);
  }
  expect(asked).toEqual(
    ['s1', 'p1'].flatMap((uid) => ['logs', 'exec', 'attach', 'portForward'].map((verb) => `${verb} ${uid}`)),
  );
});

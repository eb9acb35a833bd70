/** The data folder is on a small separate disk, and memory thresholds have values that are always exceeded. */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../src/api/generated/types.ts';
import { runCommandOk } from '../../src/platform/processes.ts';
import { containerdPaths } from '../../src/runtime/containerd/paths.ts';
import { writeImageArchive } from '../../src/runtime/images/archive-writer.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { ownDisk } from '../support/own-disk.ts';
import { lifepod, record as pods, recordAgain, useOwnEngine } from '../support/own-engine.ts';
import { condition, inPhase, isReady, restarted, statusOf } from '../support/pods.ts';

const DISK = ['--eviction-hard', 'nodefs.available<256Mi', '--eviction-pressure-transition-period', '0s'];
useOwnEngine(async () => ({ scratch: await ownDisk('1g', 20_000), options: DISK }));

const restartWith = async (...options: string[]): Promise<void> => {
  await lifepod.kill('SIGTERM');
  lifepod.options.push(...options);
  await lifepod.up();
  await recordAgain();
};
const run = async (...manifests: Record<string, unknown>[]): Promise<void> => {
  for (const manifest of manifests) await lifepod.apply(manifest);
  for (const { metadata } of manifests as unknown as Pod[]) await pods.until(metadata.name, isReady);
};
const fill = (mebibytes: number, path: string): string =>
  `dd if=/dev/zero of=${path} bs=1M count=${mebibytes} 2>/dev/null; ${WAIT}`;
const fillDisk = (path: string): Promise<string> =>
  runCommandOk('sh', ['-c', `dd if=/dev/zero of=${path} bs=4k 2>/dev/null; true`]);
const data = (emptyDir: object) => ({
  spec: { volumes: [{ name: 'data', emptyDir }] },
  mount: { volumeMounts: [{ name: 'data', mountPath: '/data' }] },
});
const evicted = async (name: string): Promise<Pod> => {
  const failed = await pods.until(name, inPhase('Failed'));
  expect(failed.status?.reason).toBe('Evicted');
  const message = failed.status?.message ?? '';
  expect(condition(failed, 'DisruptionTarget')).toMatchObject({
    status: 'True',
    reason: 'TerminationByKubelet',
    message,
  });
  expect(await pods.event(name, /Evicted/)).toBe(`Warning Evicted: ${message}`);
  return failed;
};

describe('limits of one Pod', () => {
  const limits = (bytes: string) => ({ resources: { limits: { 'ephemeral-storage': bytes } } });
  const inVolume = (script: string) => [{ name: 'app', script: `${script}; ${WAIT}`, ...data({}).mount }];
  const write = (mebibytes: number, path: string): string =>
    `dd if=/dev/zero of=${path} bs=1M count=${mebibytes} 2>/dev/null`;
  // The tree is built from its deepest folder upward, because the kernel does not accept its full path.
  const name = 'd'.repeat(250);
  const deep = `cd /data; mkdir top; ${write(9, 'top/file')}; for i in $(seq 40); do mkdir new; mv top new/${name}; mv new top; done`;
  const cases = {
    volume: {
      options: { app: inVolume(write(9, '/data/file')), spec: data({ sizeLimit: '5Mi' }).spec },
      message: 'Usage of EmptyDir volume "data" exceeds the limit "5Mi". ',
    },
    deep: {
      options: { app: inVolume(deep), spec: data({ sizeLimit: '5Mi' }).spec },
      message: 'Usage of EmptyDir volume "data" exceeds the limit "5Mi". ',
    },
    whole: {
      options: {
        app: [
          { name: 'app', script: WAIT, ...limits('4Mi') },
          { name: 'free', script: `${write(9, '/data/file')}; ${WAIT}`, ...data({}).mount },
        ],
        spec: data({}).spec,
      },
      message: 'Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. ',
    },
    sidecar: {
      options: {
        init: [{ name: 'side', script: fill(9, '/file'), restartPolicy: 'Always', ...limits('4Mi') }],
        app: [{ name: 'app', script: WAIT, ...limits('100Mi') }],
      },
      message: 'Container side exceeded its local ephemeral storage limit "4Mi". ',
    },
    hosts: {
      options: { app: [{ name: 'app', script: fill(9, '/etc/hosts'), ...limits('4Mi') }] },
      message: 'Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. ',
    },
    termination: {
      options: {
        app: [
          { name: 'app', script: fill(9, '/dev/termination-log'), ...limits('4Mi') },
          { name: 'free', script: WAIT, ...limits('100Mi') },
        ],
      },
      message: 'Container app exceeded its local ephemeral storage limit "4Mi". ',
    },
  };

  it('each Pod that exceeds a storage limit is evicted, however it hides the data, and its data can be removed', async () => {
    const pretends = { metadata: { name: 'pretender', annotations: { 'kubernetes.io/config.source': 'file' } } };
    await run(pod('modest-one', { app: inVolume(write(1, '/data/file')), spec: data({ sizeLimit: '5Mi' }).spec }));
    for (const [each, { options }] of Object.entries(cases)) await lifepod.apply(pod(each, options));
    await lifepod.apply({ ...pod('pretender', cases.volume.options), ...pretends });
    for (const [each, { message }] of Object.entries({ ...cases, pretender: cases.volume }))
      expect((await evicted(each)).status?.message, each).toBe(message);
    expect(pods.now('modest-one').status?.phase).toBe('Running');
    await lifepod.kubectlOk('delete', 'pod', '--all');
  });
});

describe('a full disk', () => {
  it('the Pod that fills the disk is evicted immediately, without its defer containers; the other Pods stay', async () => {
    await run(pod('modest'));
    const filling = { name: 'app', script: fill(850, '/data/file'), ...data({}).mount };
    await lifepod.apply(
      pod('filler', { app: [filling], defer: [{ name: 'last', script: 'true' }], spec: data({}).spec }),
    );
    const { status } = await evicted('filler');
    expect(status?.message).toMatch(
      /^The node was low on resource: ephemeral-storage. Threshold quantity: 256Mi, available: \d+[A-Z]i\. /,
    );
    expect(statusOf(pods.now('filler'), 'last').state?.terminated?.reason).toBe('Skipped');
    expect(status?.termination?.reason).toBe('NodePressure');
    expect(await lifepod.kubectlOk('get', 'events', '--field-selector', 'reason=EvictionThresholdMet')).toContain(
      'Attempting to reclaim ephemeral-storage',
    );
    expect(pods.now('modest').status?.phase).toBe('Running');
  });

  it('a Pod is evicted even when no byte of the disk is free', async () => {
    const greedy = {
      name: 'app',
      script: `dd if=/dev/zero of=/data/file bs=1M 2>/dev/null; ${WAIT}`,
      ...data({}).mount,
    };
    await lifepod.apply(pod('greedy', { app: [greedy], spec: data({}).spec }));
    expect((await evicted('greedy')).status?.message).toMatch(/^The node was low on resource: ephemeral-storage. /);
    expect(pods.now('modest').status?.phase).toBe('Running');
  });

  it('an engine that dies while no byte of the disk is free starts again, and evicts the Pod', async () => {
    await restartWith('--eviction-hard', 'memory.available<100Mi');
    await run(pod('hidden', { app: [{ name: 'app', script: WAIT, ...data({}).mount }], spec: data({}).spec }));
    const { uid } = pods.now('hidden').metadata;
    const isFull = `disk of ${lifepod.dataDir}: full: `;
    expect((await lifepod.cli('status')).stdout).not.toContain(isFull);
    await fillDisk(join(lifepod.dataDir, 'pods', uid ?? '', 'volumes/kubernetes.io~empty-dir/data/file'));
    expect((await lifepod.cli('status')).stdout).toContain(isFull);
    await lifepod.kill('SIGKILL');
    lifepod.options.push(...DISK);
    await lifepod.up();
    await recordAgain();
    expect((await evicted('hidden')).status?.message).toMatch(/^The node was low on resource: ephemeral-storage. /);
    expect(pods.now('modest').status?.phase).toBe('Running');
  });

  it('a node with a full disk is tainted and accepts no Pod until the pressure is over', async () => {
    await restartWith('--eviction-hard', 'nodefs.available<2Gi');
    await lifepod.until(['get', 'node', 'node-1', '-w', '-o', 'jsonpath={.spec.taints[*].key}{"\\n"}'], (line) =>
      line.includes('node.kubernetes.io/disk-pressure'),
    );
    const { status } = await lifepod.get<Node>('node', 'node-1');
    expect(status?.conditions?.find(({ type }) => type === 'DiskPressure')).toMatchObject({
      status: 'True',
      reason: 'KubeletHasDiskPressure',
    });
    await lifepod.apply(pod('unscheduled'));
    await pods.event('unscheduled', /FailedScheduling: .*node.kubernetes.io\/disk-pressure/);
    await lifepod.apply(pod('refused', { spec: { nodeName: 'node-1' } }));
    const refused = await pods.until('refused', inPhase('Failed'));
    expect(refused.status).toMatchObject({
      reason: 'Evicted',
      message: 'Pod was rejected: The node had condition: [DiskPressure]. ',
    });
    expect(await lifepod.kubectlOk('get', 'pod', 'refused')).toContain('Evicted');
    await evicted('modest');

    await restartWith(...DISK);
    await pods.until('unscheduled', isReady);
    await lifepod.kubectlOk('delete', 'pod', '--all');
  });

  it('data of a Pod that has ended is deleted before any Pod is evicted', async () => {
    await restartWith('--eviction-hard', 'nodefs.available<1Mi');
    await run(pod('living'));
    const script = 'echo written; dd if=/dev/zero of=/file bs=1M count=800 2>/dev/null';
    await lifepod.apply(pod('over', { app: [{ name: 'app', script }], spec: { restartPolicy: 'Never' } }));
    await pods.until('over', inPhase('Succeeded'));
    await restartWith(...DISK);
    const pressure = '{.status.conditions[?(@.type=="DiskPressure")].status}{"\\n"}';
    await lifepod.until(['get', 'node', 'node-1', '-w', '-o', `jsonpath=${pressure}`], (line) => line === 'False');
    expect(pods.now('living').status?.phase).toBe('Running');
    expect(statusOf(pods.now('over'), 'app').state?.terminated?.exitCode).toBe(0);
    expect(await lifepod.kubectlOk('logs', 'over')).toBe('written\n');
    await lifepod.kubectlOk('delete', 'pod', '--all');
  });
});

describe('memory', () => {
  const soft = [
    '--eviction-soft',
    'memory.available<1000Gi',
    '--eviction-soft-grace-period',
    'memory.available=1s',
    '--eviction-max-pod-grace-period',
    '8',
  ];
  const none = ['--eviction-soft', '', '--eviction-soft-grace-period', ''];

  const refusesBestEffortOnly = async (): Promise<void> => {
    const spec = { nodeName: 'node-1' };
    const resources = { requests: { memory: '1Mi' } };
    await lifepod.apply(pod('best-effort', { spec }));
    await lifepod.apply(pod('burstable', { spec, app: [{ name: 'app', script: WAIT, resources }] }));
    expect((await pods.until('best-effort', inPhase('Failed'))).status).toMatchObject({
      reason: 'Evicted',
      message: 'Pod was rejected: The node had condition: [MemoryPressure]. ',
    });
    expect((await evicted('burstable')).status?.message).toMatch(/^The node was low on resource: memory. /);
  };

  it('a soft memory threshold ends one Pod after the other, with grace for defer containers; critical Pods stay', async () => {
    const critical = pod('critical', { spec: { priorityClassName: 'system-node-critical' } });
    await run(
      critical,
      pod('asked', { app: [{ name: 'app', script: WAIT, resources: { requests: { memory: '1Gi' } } }] }),
      pod('asked-for-nothing', {
        defer: [
          {
            name: 'last',
            script: 'sleep 1; echo "$REASON" > /dev/termination-log; exit 0',
            env: [{ name: 'REASON', valueFrom: { fieldRef: { fieldPath: 'status.termination.reason' } } }],
          },
        ],
        spec: { terminationGracePeriodSeconds: 60 },
      }),
    );
    await restartWith(...soft);
    const first = await evicted('asked-for-nothing');
    expect(first.status?.message).toMatch(
      /^The node was low on resource: memory. Threshold quantity: 1000Gi, available: \d+[A-Z]i\. Container app was using \d+[A-Z]i, request is 0, has larger consumption of memory. $/,
    );
    expect(statusOf(first, 'last').state?.terminated).toMatchObject({ reason: 'Completed', message: 'NodePressure\n' });
    const { startedAt = '', deadline = '' } = first.status?.termination ?? {};
    expect(Math.round((Date.parse(deadline) - Date.parse(startedAt)) / 1000)).toBe(8);
    // Only one Pod is evicted at a time, and a Pod whose usage is within its request comes later.
    const second = await evicted('asked');
    expect(second.status?.message).toMatch(/^The node was low on resource: memory. Threshold [^C]*$/);
    const overAt = pods.history('asked-for-nothing').find(({ pod: seen }) => seen.status?.phase === 'Failed')?.at ?? 0;
    const begunAt = pods
      .history('asked')
      .find(({ pod: seen }) => condition(seen, 'DisruptionTarget') !== undefined)?.at;
    expect(begunAt).toBeGreaterThanOrEqual(overAt);
    expect(pods.now('critical').status?.phase).toBe('Running');
    await refusesBestEffortOnly();
    await restartWith(...none);
    await lifepod.kubectlOk('delete', 'pod', '--all');
  });

  it('an eviction in progress continues after the agent was killed', async () => {
    // The next agent sends SIGTERM again while the app is already ending, so the app ignores the second SIGTERM.
    const slow = 'trap "trap : TERM; sleep 4; exit 0" TERM; while :; do sleep 3600 & wait $!; done';
    await run(pod('slow', { app: [{ name: 'app', script: slow }] }));
    await restartWith(...soft);
    await pods.until('slow', (seen) => condition(seen, 'DisruptionTarget') !== undefined);
    await lifepod.kill('SIGKILL');
    lifepod.options.push(...none);
    await lifepod.up();
    await recordAgain();
    const { status } = await pods.until('slow', inPhase('Failed'));
    expect(status).toMatchObject({
      reason: 'Evicted',
      message: expect.stringMatching(/^The node was low on resource: memory/),
    });
    expect(statusOf(pods.now('slow'), 'app')).toMatchObject({
      restartCount: 0,
      state: { terminated: { exitCode: 0 } },
    });
  });
});

describe('other signals', () => {
  const isEvicted = (seen: Pod): boolean => condition(seen, 'DisruptionTarget') !== undefined;

  it('under PID pressure, the Pod with the most processes is evicted first, even if the agent is killed during the eviction', async () => {
    const many = `for i in 1 2 3 4 5 6 7 8 9; do sleep 3600 & done; ${WAIT}`;
    await run(pod('few'), pod('many', { app: [{ name: 'app', script: many }] }));
    await restartWith('--eviction-hard', 'pid.available<100M');
    await pods.until('many', isEvicted);
    await lifepod.kill('SIGKILL');
    await lifepod.up();
    await recordAgain();
    const { status } = await pods.until('many', inPhase('Failed'));
    expect(status).toMatchObject({
      reason: 'Evicted',
      message: expect.stringMatching(/^The node was low on resource: pids. Threshold quantity: /),
    });
    expect(statusOf(pods.now('many'), 'app').restartCount).toBe(0);
    expect((await evicted('few')).status?.message).toMatch(/^The node was low on resource: pids. /);
    await lifepod.kubectlOk('delete', 'pod', '--all');
  });

  it('when inodes run out, the Pod with the most inodes is evicted, not the Pod with the most bytes', async () => {
    await restartWith('--eviction-hard', 'nodefs.inodesFree<10k');
    const { spec, mount } = data({});
    await run(pod('bytes', { app: [{ name: 'app', script: fill(90, '/data/file'), ...mount }], spec }));
    const files = { name: 'app', script: `cd /data; seq 12000 | xargs touch; ${WAIT}`, ...mount };
    await lifepod.apply(pod('files', { app: [files], spec }));
    expect((await evicted('files')).status?.message).toMatch(
      /^The node was low on resource: inodes. Threshold quantity: 10k, available: \d+. $/,
    );
    expect(pods.now('bytes').status?.phase).toBe('Running');
    await lifepod.kubectlOk('delete', 'pod', '--all');
  });

  it('when the image disk is full, unused images are removed before a Pod is evicted, and data on other disks does not count', async () => {
    await lifepod.kill('SIGTERM');
    const { root } = containerdPaths(lifepod.dataDir);
    const moved = `mv ${root} ${root}-old; mkdir ${root}; mount -t tmpfs -o size=400m tmpfs ${root}; cp -a ${root}-old/. ${root}; rm -r ${root}-old`;
    await runCommandOk('sh', ['-ec', moved]);
    lifepod.options.push('--eviction-hard', 'imagefs.available<280Mi', '--minimum-image-ttl-duration', '0s');
    await lifepod.up();
    await recordAgain();
    const { spec, mount } = data({});
    await run(pod('elsewhere', { app: [{ name: 'app', script: fill(300, '/data/file'), ...mount }], spec }));

    const event = ['get', 'events', '--watch-only', '--field-selector', 'reason=NodeHasNoDiskPressure'];
    const freed = lifepod.until(event, (line) => line.includes('NodeHasNoDiskPressure'));
    const archive = join(lifepod.dataDir, 'large.tar');
    const content = Buffer.alloc(120 * 2 ** 20);
    await writeImageArchive(archive, 'example.com/large:1', [{ type: 'file', path: 'large', mode: 0o644, content }], {
      env: [],
    });
    await lifepod.cliOk('image', 'load', archive);
    await freed;
    expect(await lifepod.cliOk('image', 'list')).not.toContain('example.com/large');
    expect(pods.events('elsewhere').join('\n')).not.toContain('Evicted');

    await lifepod.apply(pod('writer', { app: [{ name: 'app', script: fill(160, '/file') }] }));
    expect((await evicted('writer')).status?.message).toMatch(
      /^The node was low on resource: ephemeral-storage. Threshold quantity: 280Mi, available: \d+[A-Z]i\. /,
    );
    expect(pods.now('elsewhere').status?.phase).toBe('Running');
  });

  it('with a full disk, shutdown-node and down still end the Pods, even if the engine is dead', async () => {
    const filling = join(lifepod.dataDir, 'filling');
    await fillDisk(filling);
    await lifepod.kill('SIGKILL');
    expect(await lifepod.cliOk('shutdown-node')).toContain('\nthe Pods have ended;');
    rmSync(filling);
    await lifepod.up();
    await recordAgain();
    // If the status of the Pod could not be written, the Pod runs again after the restart.
    await pods.until('elsewhere', (seen) => inPhase('Failed')(seen) || restarted('app', 1)(seen));

    mkdirSync(join(lifepod.dataDir, 'manifests'), { recursive: true });
    writeFileSync(join(lifepod.dataDir, 'manifests/fixed.json'), JSON.stringify(pod('fixed')));
    await pods.until('fixed-node-1', isReady);
    await fillDisk(filling);
    pods.end();
    await lifepod.kill('SIGKILL');
    expect(await lifepod.cliOk('down')).toContain('\nended default/fixed-node-1 ');
  });
});

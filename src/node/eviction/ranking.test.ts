import { describe, expect, it, test } from 'vitest';
import type { Pod, PodSpec } from '../../api/generated/types.ts';
import { brokenDiskLimit, evictionMessage, type PodUse, rankForEviction } from './ranking.ts';
import type { Signal, Threshold } from './thresholds.ts';

const MIB = 2 ** 20;
const podOf = (name: string, spec: Partial<PodSpec> = {}, requests: Record<string, string> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, uid: name },
  spec: { containers: [{ name: 'app', image: 'i', resources: { requests } }], ...spec },
});
const threshold = (signal: Signal): Threshold => ({ signal, value: { count: 100 * MIB }, graceSeconds: 0, hard: true });
const useOf = (part: Partial<PodUse['containers'] extends ReadonlyMap<string, infer C> ? C : never>): PodUse => ({
  containers: new Map([['app', { memoryBytes: 0, ...part }]]),
  volumes: new Map(),
});
const disk = (mebibytes: number, inodes = 0) => ({ bytes: mebibytes * MIB, inodes });
const shared = { separateImages: false };

describe('rankForEviction', () => {
  test.each<[string, Signal, [Pod, PodUse | undefined][], string[]]>([
    [
      'for memory ranks Pods above their request first, then by priority and by how far they are above it',
      'memory.available',
      [
        [podOf('below', {}, { memory: '50Mi' }), useOf({ memoryBytes: 40 * MIB })],
        [podOf('above', {}, { memory: '50Mi' }), useOf({ memoryBytes: 60 * MIB })],
        [podOf('exact', {}, { memory: '50Mi' }), useOf({ memoryBytes: 50 * MIB })],
        [podOf('best-effort'), useOf({ memoryBytes: 20 * MIB })],
        [podOf('important', { priority: 1000 }, { memory: '1Mi' }), useOf({ memoryBytes: 900 * MIB })],
      ],
      ['best-effort', 'above', 'important', 'exact', 'below'],
    ],
    [
      'for memory ranks a Pod of unknown usage first',
      'memory.available',
      [
        [podOf('known'), useOf({ memoryBytes: 900 * MIB })],
        [podOf('unknown'), undefined],
      ],
      ['unknown', 'known'],
    ],
    [
      'for disk space adds up the files of containers, logs and volumes',
      'nodefs.available',
      [
        [podOf('log'), useOf({ logs: disk(3) })],
        [podOf('root'), useOf({ rootFs: disk(2) })],
        [podOf('volume'), { containers: new Map(), volumes: new Map([['v', disk(4)]]) }],
        [podOf('asked', {}, { 'ephemeral-storage': '1Gi' }), useOf({ rootFs: disk(500) })],
      ],
      ['volume', 'log', 'root', 'asked'],
    ],
    [
      'for inodes ranks by the number of files',
      'nodefs.inodesFree',
      [
        [podOf('bytes'), useOf({ rootFs: disk(900, 10) })],
        [podOf('files'), useOf({ rootFs: disk(1, 5000) })],
      ],
      ['files', 'bytes'],
    ],
    [
      'for processes ranks by priority, then by the number of processes',
      'pid.available',
      [
        [podOf('few'), useOf({ processes: 2 })],
        [podOf('many'), useOf({ processes: 200 })],
        [podOf('important', { priority: 5 }), useOf({ processes: 900 })],
        [podOf('lowly', { priority: -5 }), useOf({ processes: 1 })],
      ],
      ['lowly', 'many', 'few', 'important'],
    ],
  ])('rankForEviction %s', (_, signal, pods, expected) => {
    const uses = new Map(pods.map(([pod, use]) => [pod, use]));
    const ranked = rankForEviction([...uses.keys()], (pod) => uses.get(pod), threshold(signal), shared);
    expect(ranked.map(({ metadata }) => metadata.name)).toEqual(expected);
  });

  it('rankForEviction counts only the root file systems of containers for a separate image disk', () => {
    const root = useOf({ rootFs: disk(5) });
    const log = useOf({ logs: disk(9) });
    const pods = [podOf('root'), podOf('log')];
    const rank = (signal: Signal): string[] =>
      rankForEviction(pods, ({ metadata }) => (metadata.name === 'root' ? root : log), threshold(signal), {
        separateImages: true,
      }).map(({ metadata }) => metadata.name);
    expect(rank('imagefs.available')).toEqual(['root', 'log']);
    expect(rank('nodefs.available')).toEqual(['log', 'root']);
  });

  it('rankForEviction counts all files of a Pod for imagefs signals where images share the disk of the node', () => {
    const use = (pod: Pod): PodUse => useOf(pod.metadata.name === 'root' ? { rootFs: disk(5) } : { logs: disk(9) });
    const ranked = rankForEviction([podOf('root'), podOf('log')], use, threshold('imagefs.available'), shared);
    expect(ranked.map(({ metadata }) => metadata.name)).toEqual(['log', 'root']);
  });

  it('rankForEviction does not count volumes in memory as disk usage', () => {
    const inMemory = podOf('memory', { volumes: [{ name: 'v', emptyDir: { medium: 'Memory' } }] });
    const onDisk = podOf('disk', { volumes: [{ name: 'v', emptyDir: {} }] });
    const holding = (mebibytes: number): PodUse => ({ ...useOf({}), volumes: new Map([['v', disk(mebibytes, 9)]]) });
    const use = (pod: Pod): PodUse => holding(pod === inMemory ? 900 : 1);
    for (const signal of ['nodefs.available', 'nodefs.inodesFree'] as const) {
      const [first] = rankForEviction([inMemory, onDisk], use, threshold(signal), shared);
      expect(first).toBe(onDisk);
    }
  });
});

test.each([
  [{ count: 10_000 }, '10k'],
  [{ part: 0.5 }, '10000'],
])('evictionMessage formats inodes as decimal quantities for the threshold %j', (value, quantity) => {
  const seen = { 'nodefs.inodesFree': { available: 7336, capacity: 20_000 } };
  expect(evictionMessage(podOf('p'), useOf({}), { ...threshold('nodefs.inodesFree'), value }, seen)).toBe(
    `The node was low on resource: inodes. Threshold quantity: ${quantity}, available: 7336. `,
  );
});

it('evictionMessage names the request of a sidecar and does not mention ephemeral containers', () => {
  const pod = podOf('p', {
    initContainers: [{ name: 'side', image: 'i', restartPolicy: 'Always', resources: { requests: { memory: '3Mi' } } }],
    ephemeralContainers: [{ name: 'debug', image: 'i' }],
  });
  const use = { memoryBytes: 4 * MIB };
  const containers = new Map([
    ['side', use],
    ['debug', use],
  ]);
  expect(evictionMessage(pod, { containers, volumes: new Map() }, threshold('memory.available'), {})).toBe(
    'The node was low on resource: memory. Container side was using 4Mi, request is 3Mi, has larger consumption of memory. ',
  );
});

it('evictionMessage names the resource, the threshold, the available amount and the containers above their request', () => {
  const seen = { 'memory.available': { available: 60 * MIB, capacity: 1024 * MIB } };
  expect(evictionMessage(podOf('p'), useOf({ memoryBytes: 2 * MIB }), threshold('memory.available'), seen)).toBe(
    'The node was low on resource: memory. Threshold quantity: 100Mi, available: 60Mi. Container app was using 2Mi, request is 0, has larger consumption of memory. ',
  );
  const files = { 'nodefs.available': { available: 1536, capacity: 1024 * MIB } };
  const use = useOf({ rootFs: disk(1), logs: disk(1) });
  expect(
    evictionMessage(podOf('p', {}, { 'ephemeral-storage': '3Mi' }), use, threshold('nodefs.available'), files),
  ).toBe('The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, available: 1536. ');
  expect(
    evictionMessage(
      podOf('p', {}, { memory: '2Mi' }),
      useOf({ memoryBytes: 2 * MIB }),
      threshold('memory.available'),
      {},
    ),
  ).toBe('The node was low on resource: memory. ');
  for (const [part, using] of [
    [use, 'Container app was using 2Mi, request is 1Mi, has larger consumption of ephemeral-storage. '],
    [useOf({ logs: disk(9) }), ''],
  ] as const)
    expect(
      evictionMessage(podOf('p', {}, { 'ephemeral-storage': '1Mi' }), part, threshold('nodefs.available'), {}),
    ).toBe(`The node was low on resource: ephemeral-storage. ${using}`);
});

describe('brokenDiskLimit', () => {
  const limited = (limit: string): Partial<PodSpec> => ({
    containers: [{ name: 'app', image: 'i', resources: { limits: { 'ephemeral-storage': limit } } }],
  });
  const named =
    (name: string) =>
    <T extends object>(container: T): T => ({ ...container, name });
  const volume = (emptyDir: object): Partial<PodSpec> => ({ volumes: [{ name: 'v', emptyDir }] });
  const holding = (mebibytes: number): PodUse => ({ ...useOf({}), volumes: new Map([['v', disk(mebibytes)]]) });

  test.each<[string, Pod, PodUse, string | undefined]>([
    [
      'reports an emptyDir above its sizeLimit',
      podOf('p', volume({ sizeLimit: '1Mi' })),
      holding(2),
      'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
    ],
    ['accepts a volume at its limit', podOf('p', volume({ sizeLimit: '2Mi' })), holding(2), undefined],
    ['accepts a volume without a limit', podOf('p', volume({})), holding(2000), undefined],
    [
      'counts the containers of the Pod together with its volumes',
      podOf('p', { ...limited('4Mi'), ...volume({}) }),
      { ...useOf({ rootFs: disk(2), logs: disk(1) }), volumes: new Map([['v', disk(2)]]) },
      'Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. ',
    ],
    [
      'does not count a volume in memory',
      podOf('p', { ...limited('4Mi'), ...volume({ medium: 'Memory' }) }),
      { ...useOf({ rootFs: disk(2) }), volumes: new Map([['v', disk(200)]]) },
      undefined,
    ],
    [
      'takes the limit of the only container that has one for the whole Pod',
      podOf('p', { containers: [...(limited('1Mi').containers ?? []), { name: 'free', image: 'i' }] }),
      useOf({ rootFs: disk(1), logs: disk(1) }),
      'Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ',
    ],
    [
      'reports a container above its own limit although the Pod is below the total',
      podOf('p', {
        containers: [...(limited('1Mi').containers ?? []), ...(limited('9Mi').containers ?? []).map(named('other'))],
      }),
      useOf({ rootFs: disk(1), logs: disk(1) }),
      'Container app exceeded its local ephemeral storage limit "1Mi". ',
    ],
    [
      'reports a sidecar above its own limit',
      podOf('p', {
        ...limited('9Mi'),
        initContainers: (limited('1Mi').containers ?? []).map((each) => ({
          ...each,
          name: 'side',
          restartPolicy: 'Always',
        })),
      }),
      { containers: new Map([['side', { memoryBytes: 0, logs: disk(2) }]]), volumes: new Map() },
      'Container side exceeded its local ephemeral storage limit "1Mi". ',
    ],
    [
      'takes the limit of a sidecar for the whole Pod if no other container has one',
      podOf('p', {
        initContainers: (limited('1Mi').containers ?? []).map((each) => ({
          ...each,
          name: 'side',
          restartPolicy: 'Always',
        })),
      }),
      useOf({ rootFs: disk(2) }),
      'Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ',
    ],
    [
      'ignores a limit of 0',
      podOf('p', {
        containers: [...(limited('0').containers ?? []), ...(limited('9Mi').containers ?? []).map(named('other'))],
      }),
      useOf({ rootFs: disk(1) }),
      undefined,
    ],
    [
      'accepts a Pod that uses exactly its limit',
      podOf('p', limited('3Mi')),
      { ...useOf({ rootFs: disk(1), logs: disk(1) }), etcHosts: disk(1) },
      undefined,
    ],
    [
      'counts the file /etc/hosts',
      podOf('p', limited('3Mi')),
      { ...useOf({ rootFs: disk(1), logs: disk(1) }), etcHosts: disk(2) },
      'Pod ephemeral local storage usage exceeds the total limit of containers 3Mi. ',
    ],
  ])('brokenDiskLimit %s', (_, pod, use, message) => {
    expect(brokenDiskLimit(pod, use, shared)).toBe(message);
  });

  it('brokenDiskLimit does not count the root file system for the limit of a container if images have a separate disk', () => {
    const containers = [...(limited('2Mi').containers ?? []), ...(limited('9Mi').containers ?? []).map(named('other'))];
    const use = useOf({ rootFs: disk(2), logs: disk(1) });
    expect(brokenDiskLimit(podOf('p', { containers }), use, shared)).toContain('Container app exceeded');
    expect(brokenDiskLimit(podOf('p', { containers }), use, { separateImages: true })).toBeUndefined();
  });
});

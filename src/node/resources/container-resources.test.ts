import { describe, expect, it, test } from 'vitest';
import { containerOf, defaulted, deferOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Container, Pod, PodSpec } from '../../api/generated/types.ts';
import { containerResources, oomScoreAdjust, podLimits } from './container-resources.ts';

type Amounts = Record<string, string>;
const limited = (...each: Amounts[]): Container[] =>
  each.map((limits, index) => containerOf(`c${index}`, { resources: { limits } }));
const requesting = (...each: Amounts[]): Container[] =>
  each.map((requests, index) => containerOf(`r${index}`, { resources: { requests } }));
const gib = 1024 ** 3;
const of = (spec: Partial<PodSpec>, sizes: string[] = [], pids = -1) => podLimits(defaulted(podOf(spec)), sizes, pids);

describe('podLimits()', () => {
  it.each<[string, Partial<PodSpec>, object]>([
    [
      'the effective limits of the first worked example',
      {
        initContainers: [
          containerOf('i', { resources: { limits: { cpu: '100m', memory: '1Gi' } } }),
          containerOf('j', { resources: { limits: { cpu: '50m', memory: '2Gi' } } }),
        ],
        containers: limited({ cpu: '10m', memory: '1100Mi' }, { cpu: '10m', memory: '1100Mi' }),
      },
      { cpuShares: 102, cpuQuotaMicros: 10_000, memoryBytes: 2200 * 1024 ** 2 },
    ],
    [
      // If a container has no limit, the Pod has none. The enhancement proposal that contains the worked examples applies the limits of the
      // init container instead.
      'no limit of the second worked example',
      {
        initContainers: [containerOf('i', { resources: { limits: { cpu: '100m', memory: '1Gi' } } })],
        containers: requesting({ cpu: '10m', memory: '1100Mi' }),
      },
      { cpuShares: 102 },
    ],
    ['only the minimum of CPU shares for BestEffort', {}, { cpuShares: 2 }],
    [
      'only a memory limit if not all containers have a CPU limit',
      { containers: limited({ cpu: '1', memory: '1Gi' }, { memory: '1Gi' }) },
      { cpuShares: 1024, memoryBytes: 2 * gib },
    ],
    [
      'no limits if a container has a limit of zero',
      { containers: limited({ cpu: '0', memory: '1Gi' }, { cpu: '1', memory: '0' }) },
      { cpuShares: 1024 },
    ],
    [
      'the sum of sidecars, app containers and the highest PreExit container',
      {
        initContainers: [
          containerOf('s', { restartPolicy: 'Always', resources: { limits: { cpu: '100m', memory: '1Gi' } } }),
        ],
        containers: limited({ cpu: '200m', memory: '1Gi' }),
        deferContainers: [
          deferOf('a', { trigger: 'PreExit', resources: { limits: { cpu: '300m', memory: '1Gi' } } }),
          deferOf('b', { trigger: 'PreExit', resources: { limits: { cpu: '400m', memory: '1Gi' } } }),
        ],
      },
      { cpuShares: 716, cpuQuotaMicros: 70_000, memoryBytes: 3 * gib },
    ],
    [
      'the limits of the other containers if a defer container has no requests and limits',
      {
        containers: limited({ cpu: '1', memory: '1Gi' }),
        deferContainers: [deferOf('a'), deferOf('b', { trigger: 'PostExit', resources: { limits: {} } })],
      },
      { cpuShares: 1024, cpuQuotaMicros: 100_000, memoryBytes: gib },
    ],
    [
      'the limits of the other containers if a defer container requests nothing but zeros',
      {
        containers: limited({ cpu: '1', memory: '1Gi' }),
        deferContainers: [deferOf('a', { resources: { requests: { cpu: '0', memory: '0' } } })],
      },
      { cpuShares: 1024, cpuQuotaMicros: 100_000, memoryBytes: gib },
    ],
    [
      'no memory limit if a defer container with a memory request has none',
      {
        containers: limited({ cpu: '1', memory: '1Gi' }),
        deferContainers: [deferOf('a', { resources: { requests: { memory: '1Mi' }, limits: { cpu: '1' } } })],
      },
      { cpuShares: 2048, cpuQuotaMicros: 200_000 },
    ],
    [
      'the overhead in addition to the containers',
      { containers: limited({ cpu: '1', memory: '1Gi' }), overhead: { cpu: '500m', memory: '1Gi' } },
      { cpuShares: 1536, cpuQuotaMicros: 150_000, memoryBytes: 2 * gib },
    ],
    [
      'a CPU quota of at least one millisecond',
      { containers: limited({ cpu: '1m' }) },
      { cpuShares: 2, cpuQuotaMicros: 1000 },
    ],
  ])('podLimits() returns %s', (_what, spec, expected) => {
    expect(of(spec)).toEqual({ ...expected, hugepageBytes: {} });
  });

  it('podLimits() returns the sum of the huge pages of each size, and the limit of processes if there is one', () => {
    const spec = {
      containers: limited({ memory: '1Gi', 'hugepages-2Mi': '4Mi' }, { memory: '1Gi', 'hugepages-2Mi': '2Mi' }),
    };
    expect(of(spec, ['1GB', '2MB'], 100)).toMatchObject({
      pids: 100,
      hugepageBytes: { '1GB': 0, '2MB': 6 * 1024 ** 2 },
    });
    expect(of(spec)).not.toHaveProperty('pids');
  });
});

test('the huge pages of a container are limited to zero for sizes without a limit', () => {
  const [container] = limited({ memory: '1Gi', 'hugepages-2Mi': '4Mi' });
  const pod = defaulted(podOf({ containers: [container as Container] }));
  expect(
    containerResources(pod, pod.spec?.containers[0] as Container, gib, {
      version: 1,
      hugepageSizes: ['1GB', '2MB', '64KB'],
      limitsSwap: false,
    }).hugepageBytes,
  ).toEqual({
    '1GB': 0,
    '2MB': 4 * 1024 ** 2,
    '64KB': 0,
  });
});

test.each<[string, Amounts, 1 | 2, boolean, object]>([
  ['a memory limit on cgroup v1 with swap accounting', { memory: '1Gi' }, 1, true, { memorySwapLimitBytes: gib }],
  ['a memory limit on cgroup v1 without swap accounting', { memory: '1Gi' }, 1, false, {}],
  ['no memory limit on cgroup v1', {}, 1, true, {}],
  [
    'a memory limit on cgroup v2 with swap accounting',
    { memory: '1Gi' },
    2,
    true,
    { unified: { 'memory.oom.group': '1', 'memory.swap.max': '0' } },
  ],
  ['no memory limit on cgroup v2', {}, 2, false, { unified: { 'memory.oom.group': '1' } }],
])(
  'swap is disabled for a container with a memory limit if the kernel accounts for swap: %s',
  (_what, limits, version, limitsSwap, expected) => {
    const pod = defaulted(podOf({ containers: limited(limits) }));
    const facts = { version, hugepageSizes: [], limitsSwap };
    const { memorySwapLimitBytes, unified } = containerResources(pod, pod.spec?.containers[0] as Container, gib, facts);
    expect({ memorySwapLimitBytes, unified }).toEqual(expected);
  },
);

describe('oomScoreAdjust()', () => {
  const score = (pod: Pod, name: string): number => {
    const all = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
    return oomScoreAdjust(pod, all.find((each) => each.name === name) as Container, 4 * gib);
  };
  const app = containerOf('app', { resources: { requests: { memory: '2Gi' } } });
  it.each<[string, Partial<PodSpec>, string, number]>([
    ['for a container that requests half of the memory', { containers: [app] }, 'app', 500],
    [
      'for a sidecar that requests less than the app containers',
      { initContainers: [containerOf('s', { restartPolicy: 'Always' })], containers: [app] },
      's',
      500,
    ],
    [
      'for a sidecar that requests more than the app containers',
      {
        initContainers: [containerOf('s', { restartPolicy: 'Always', resources: { requests: { memory: '3Gi' } } })],
        containers: [app],
      },
      's',
      250,
    ],
    ['for an init container', { initContainers: [containerOf('i')], containers: [app] }, 'i', 999],
    [
      'for a node-critical Pod',
      { containers: [app], priorityClassName: 'system-node-critical', priority: 2_000_001_000 },
      'app',
      -997,
    ],
    [
      'for a cluster-critical Pod',
      { containers: [app], priorityClassName: 'system-cluster-critical', priority: 2_000_000_000 },
      'app',
      500,
    ],
  ])('oomScoreAdjust() returns the expected score %s', (_what, spec, name, expected) => {
    expect(score(defaulted(podOf(spec)), name)).toBe(expected);
  });
});

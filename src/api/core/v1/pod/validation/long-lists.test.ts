import { expect, test } from 'vitest';
import { firstErrors } from '../../../../../machinery/field-error.ts';
import { cpuMillisOf } from '../../../../../machinery/testing.ts';
import type { Pod, PodSpec } from '../../../../generated/types.ts';
import { containerOf, defaulted, deferOf, podOf } from '../pod-fixtures.ts';
import { effectiveLimits, effectiveRequests, resourceTexts } from '../resources.ts';
import { validateDeferContainers } from './validate-defers.ts';
import { validatePodCreate } from './validation.ts';
import { podWarnings } from './warnings.ts';

/** The upper bound for the CPU time. An algorithm that compares all pairs takes several times as long. */
const STALL_MILLIS = 1000;

const list = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));

test('host ports of defer containers are compared with those of app containers in linear time', () => {
  const ports = list(1000, (index) => ({ containerPort: 1, hostPort: index + 1 }));
  const spec: PodSpec = {
    containers: list(10_000, (index) => containerOf(`c${index}`, index === 0 ? { ports } : {})),
    deferContainers: list(10_000, (index) => deferOf(`d${index}`, { trigger: index % 2 ? 'PostExit' : 'PreExit' })),
  };
  spec.deferContainers?.push(deferOf('last', { trigger: 'PreExit', ports: ports.slice(-1) }));
  const errors = () => validateDeferContainers({ spec, volumes: new Map(), claimNames: new Set() });
  const duplicates = () => errors().filter(({ body }) => body.startsWith('Duplicate value'));
  expect(cpuMillisOf(() => expect(duplicates()).toHaveLength(1))).toBeLessThan(STALL_MILLIS);
});

test('effective resources of many init containers and a sidecar are computed in linear time', () => {
  const limits = Object.fromEntries(list(3000, (index) => [`example.com/r${index}`, '1']));
  const pod: Pod = podOf({
    initContainers: [
      containerOf('s', { restartPolicy: 'Always', resources: { limits } }),
      ...list(3000, (index) => containerOf(`i${index}`, { resources: { limits: { cpu: `${index}m` } } })),
      ...list(3000, (index) => containerOf(`s${index}`, { restartPolicy: 'Always' })),
    ],
  });
  expect(cpuMillisOf(() => effectiveLimits(pod))).toBeLessThan(STALL_MILLIS);
  const time = cpuMillisOf(() => {
    expect(resourceTexts(effectiveRequests(pod))).toEqual({ ...limits, cpu: '2999m' });
  });
  expect(time).toBeLessThan(STALL_MILLIS);
});

test('validation stops after 1001 errors', () => {
  const keys = list(100_000, () => '');
  const spread = { maxSkew: 1, topologyKey: 'a', whenUnsatisfiable: 'ScheduleAnyway', labelSelector: {} };
  const finalizers = list(100_000, () => '');
  for (const pod of [
    podOf({ topologySpreadConstraints: [{ ...spread, matchLabelKeys: keys }] }),
    podOf({ tolerations: keys.map(() => ({ operator: 'x' })) }),
    podOf({ containers: [containerOf('a', { env: keys.map((name) => ({ name })) })] }),
    { ...podOf(), metadata: { name: 'a', namespace: 'b', finalizers } },
  ]) {
    expect(firstErrors(() => validatePodCreate(defaulted(pod)))).toHaveLength(1001);
  }
});

test('a sidecar and an app container may have the same host ports', () => {
  const ports = list(2000, (index) => ({ containerPort: 1, hostPort: index + 1 }));
  const pod = podOf({
    containers: [containerOf('a', { ports })],
    initContainers: [containerOf('s', { ports, restartPolicy: 'Always' })],
    deferContainers: [deferOf('d', { trigger: 'PostExit' })],
  });
  expect(firstErrors(() => validatePodCreate(defaulted(pod)))).toEqual([]);
});

test('a long name of a variable that is defined twice is checked in linear time', () => {
  const half = ')'.repeat(40_000);
  const name = half + half;
  const value = `${`$(${half}!`.repeat(9)}${name}${name}`;
  const warningsOf = (ofSecond: string): string[] =>
    podWarnings(podOf({ containers: [containerOf('a', { env: [{ name }, { name, value: ofSecond }] })] }));
  expect(cpuMillisOf(() => expect(warningsOf(value)).toHaveLength(1))).toBeLessThan(STALL_MILLIS);
  expect(warningsOf(`${value}$(${name})`)).toEqual([]);
});

import { join } from 'node:path';
import { expect, it, test } from 'vitest';
import {
  evictionConfig,
  hasTerminatingPhase,
  maxPods,
  nodeOptionFlags,
  reservedResources,
  resolveNodeOptions,
  shutdownPeriods,
} from './node-settings.ts';

it('the defaults of eviction and shutdown are those of the kubelet', () => {
  const options = resolveNodeOptions({}, undefined);
  expect(options.evictionHard).toBe(
    'memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%,imagefs.inodesFree<5%',
  );
  expect(evictionConfig(options)).toMatchObject({ transitionMillis: 300_000, maxPodGraceSeconds: 0 });
  expect(shutdownPeriods(options)).toEqual([
    { priority: 0, seconds: 20 },
    { priority: 2_000_000_000, seconds: 10 },
  ]);
});

it('--shutdown-grace-period-by-pod-priority replaces the two other shutdown periods', () => {
  const options = resolveNodeOptions({ shutdownGracePeriodByPodPriority: '7=3,0=1' }, { shutdownGracePeriod: '40s' });
  expect(shutdownPeriods(options)).toEqual([
    { priority: 0, seconds: 1 },
    { priority: 7, seconds: 3 },
  ]);
});

it('given node options override the recorded ones, and are passed unchanged to a detached engine', () => {
  const remembered = { evictionHard: 'memory.available<1Gi', shutdownGracePeriod: '1m' };
  const options = resolveNodeOptions({ shutdownGracePeriod: '40s' }, remembered);
  expect(options).toMatchObject({ evictionHard: 'memory.available<1Gi', shutdownGracePeriod: '40s' });
  expect(resolveNodeOptions({ resolvConf: 'own.conf' }, undefined).resolvConf).toBe(join(process.cwd(), 'own.conf'));
  const flags = nodeOptionFlags({ shutdownGracePeriod: '40s' }).filter(([, value]) => value !== undefined);
  expect(flags).toEqual([['--shutdown-grace-period', '40s']]);
});

it('reserved resources are the sum of --kube-reserved and --system-reserved', () => {
  const options = resolveNodeOptions(
    { kubeReserved: 'cpu=100m', systemReserved: 'cpu=1,pid=10', maxPods: '3' },
    undefined,
  );
  expect(reservedResources(options)).toEqual({ cpuMilli: 1100, memoryBytes: 0, diskBytes: 0, pids: 10 });
  expect(maxPods(options)).toBe(3);
});

test.each([
  [{ evictionHard: 'disk<1' }, '--eviction-hard: "disk<1" is not SIGNAL<VALUE'],
  [{ evictionMaxPodGracePeriod: 'long' }, '--eviction-max-pod-grace-period: long is not a whole number of seconds'],
  [{ shutdownGracePeriod: 'long' }, '--shutdown-grace-period: "long" is not a duration such as 30s'],
  [{ allowedUnsafeSysctls: 'vm.swappiness' }, '--allowed-unsafe-sysctls: "vm.swappiness" is not namespaced'],
  [{ shutdownGracePeriodByPodPriority: '1=x' }, '--shutdown-grace-period-by-pod-priority: "1=x" is not'],
  [{ kubeReserved: 'cpu:1' }, '--kube-reserved: "cpu:1" is not RESOURCE=AMOUNT'],
  [{ systemReserved: 'memory=x' }, '--system-reserved: "memory=x" is not RESOURCE=AMOUNT'],
  [{ terminatedPodGcThreshold: 'all' }, '--terminated-pod-gc-threshold all is not a valid number of Pods'],
  [{ maxPods: '-1' }, '--max-pods -1 is not a valid number of Pods'],
  [
    { shutdownGracePeriod: '5s' },
    '--shutdown-grace-period-critical-pods must not be longer than --shutdown-grace-period',
  ],
])('the node options %j are refused: %s', (options, message) => {
  expect(() => resolveNodeOptions(options, undefined)).toThrow(message);
});

test('the phase Terminating can be turned off, and only true and false are valid values', () => {
  expect(hasTerminatingPhase(resolveNodeOptions({}, undefined))).toBe(true);
  expect(hasTerminatingPhase(resolveNodeOptions({ terminatingPhase: 'false' }, undefined))).toBe(false);
  expect(() => resolveNodeOptions({ terminatingPhase: 'no' }, undefined)).toThrow(
    '--terminating-phase no is not valid: give true or false',
  );
});

import { expect, it } from 'vitest';
import { silentLog } from '../../platform/silent-log.ts';
import { cgroupRootOf, countPodsWithProcesses, createPodCgroups } from './pod-cgroups.ts';

it('removeOrphans() keeps the group of a Pod that starts while it runs', async () => {
  const known = new Set(['old']);
  const groups: Record<string, string[]> = { '/r/kubepods': ['burstable', 'podold', 'podgone', 'podnew'] };
  const removed: string[] = [];
  const podCgroups = await createPodCgroups({
    cgroups: {
      version: 2,
      isMadeByRuntimeToo: false,
      parentName: (path) => path,
      set: async () => undefined,
      children: async (path) => groups[path] ?? [],
      hasProcesses: async () => false,
      oomKills: async () => undefined,
      removeEmpty: async () => undefined,
      async remove(path) {
        removed.push(path);
        known.add('new');
      },
    },
    root: '/r',
    limits: { cpuMilli: 1000, memoryBytes: 1, pids: 9 },
    podPidsLimit: -1,
    hugepageSizes: [],
    log: silentLog,
  });
  await podCgroups.removeOrphans((uid) => known.has(uid));
  expect(removed).toEqual(['/r/kubepods/podgone']);
});

it('counts the Pods that have processes in the groups of either cgroup driver, and knows whether there are groups', async () => {
  const kubepods = `${cgroupRootOf('/d')}/kubepods`;
  const driver = (groups: Record<string, string[]>, running: string[]) => ({
    children: async (path: string) => groups[path] ?? [],
    hasProcesses: async (path: string) => running.includes(path),
  });
  const none = driver({}, []);
  const groups = {
    [kubepods]: ['burstable', 'besteffort', 'poda'],
    [`${kubepods}/burstable`]: ['podb', 'podc'],
  };
  expect(await countPodsWithProcesses('/d', [none, none])).toBeUndefined();
  expect(await countPodsWithProcesses('/d', [driver(groups, []), none])).toBe(0);
  const running = [`${kubepods}/burstable`, `${kubepods}/burstable/podc`, `${kubepods}/poda`];
  expect(await countPodsWithProcesses('/d', [none, driver(groups, running)])).toBe(2);
});

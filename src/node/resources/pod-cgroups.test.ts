import { expect, it } from 'vitest';
import { silentLog } from '../../platform/silent-log.ts';
import { createPodCgroups } from './pod-cgroups.ts';

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

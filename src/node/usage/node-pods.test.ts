import { expect, it } from 'vitest';
import { createPodNetworks, type UsedPod } from './node-pods.ts';

const { signal } = new AbortController();
const podIn = (sandboxId: string): UsedPod => ({
  pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: sandboxId } },
  logDirectory: '/nowhere',
  containers: [],
  sandboxId,
});

it('createPodNetworks caches the process ID of a sandbox until the sandbox is dropped, because the ID may be reused', async () => {
  const asked: string[] = [];
  const networks = createPodNetworks({
    containerUsage: async () => [],
    async sandboxPid(id) {
      asked.push(id);
      return process.pid;
    },
  });
  const [a, b] = [podIn('a'), podIn('b')];
  for (const pod of [a, a, b]) expect(await networks.interfaces(pod, signal)).toBeDefined();
  networks.keep([a]);
  for (const pod of [a, b]) await networks.interfaces(pod, signal);
  expect(asked).toEqual(['a', 'b', 'b']);
});

import { expect, test } from 'vitest';
import { NODES } from '../api/resources.ts';
import { registryBackend } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { nodeReady, withRemedy } from './node-ready.ts';

const node = (status: string, message: string) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n' },
  status: { conditions: [{ type: 'Ready', status, message }] },
});

async function start() {
  const [backend, timers, said, stop] = [
    await registryBackend(),
    createVirtualTimers(),
    [] as string[],
    new AbortController(),
  ];
  const options = { client: clientOf(backend), timers, signal: stop.signal };
  const ready = nodeReady('n', { ...options, waiting: (why) => said.push(why) });
  return { backend, timers, said, stop, ready };
}
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test('nodeReady reports the reason after 5 s and again when it changes, and resolves once the node is Ready', async () => {
  const { backend, timers, said, ready } = await start();
  await backend.set(NODES, node('False', 'one'));
  await settled();
  timers.advance(4999);
  expect(said).toEqual([]);
  timers.advance(1);
  expect(said).toEqual(['one']);
  for (const message of ['one', 'two']) await backend.set(NODES, node('False', message));
  await settled();
  expect(said).toEqual(['one', 'two']);
  const lookup = (port: number): string => `lookup r: read udp 10.0.2.15:${port}->10.0.2.3:53: i/o timeout`;
  for (const port of [47311, 5500]) await backend.set(NODES, node('False', lookup(port)));
  await settled();
  expect(said).toEqual(['one', 'two', lookup(47311)]);
  await backend.set(NODES, node('True', ''));
  await ready;
  timers.advance(60_000);
  expect(said).toHaveLength(3);
});

test('nodeReady reports that the node has not reported yet', async () => {
  const { timers, said, stop, ready } = await start();
  timers.advance(5000);
  expect(said).toEqual(['the node has not reported yet']);
  stop.abort(new Error('stopped'));
  await expect(ready).rejects.toThrow('stopped');
});

test('withRemedy adds what to do to the messages about a missing CNI configuration and sandbox image', () => {
  const message =
    'container runtime network not ready: NetworkReady is false: NetworkPluginNotReady: Network plugin returns error: cni plugin not initialized';
  expect(withRemedy(message)).toMatch(/^container runtime .*initialized; write a CNI configuration to /);
  expect(withRemedy('the container runtime pulls its sandbox image: r/pause:3.10')).toMatch(
    /pause:3\.10; if the runtime cannot reach the image's registry, load the image /,
  );
  expect(withRemedy('the container runtime has no sandbox image', { SUDO_UID: '1000' })).toContain(
    "(containerd: 'sudo ctr -n k8s.io images import FILE')",
  );
  expect(withRemedy('PLEG is not healthy')).toBe('PLEG is not healthy');
});

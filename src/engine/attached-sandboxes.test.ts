/** Tests when containers may be created, with a real registry and a fake nftables table that only stores its sections. */
import { expect, onTestFinished, test } from 'vitest';
import { registryBackend, withInformers } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import type { Section } from '../network/nftables/section.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import type { ContainerConfig, SandboxConfig, SandboxPod } from '../runtime/runtime.ts';
import { requireAttachment } from './attached-sandboxes.ts';

const ADDRESS = '10.0.0.7';
const POD = { namespace: 'a', name: 'db', uid: 'u' };
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
};

async function connected({ left = {} }: { left?: Record<string, SandboxPod> } = {}) {
  const timers = createVirtualTimers();
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const created: string[] = [];
  const services = Promise.withResolvers<void>();
  const sections: Section[] = [];
  const runtime: Parameters<typeof requireAttachment>[0] = {
    createContainer: async (sandboxId: string) => {
      created.push(sandboxId);
      return 'container';
    },
    sandboxPods: async () => new Map(Object.entries(left)),
  };
  const network = {
    attached: async () => [ADDRESS],
    sandboxes: () => new Map([['s', [ADDRESS]]]),
    isAttached: (address: string) => address === ADDRESS,
    onDetached: () => undefined,
    rules: {
      name: 'lifepod-0',
      set: async (_: string, section: Section) => {
        sections.push(section);
        return new Map();
      },
    },
  };
  const backend = await registryBackend({ timers });
  const options = withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal });
  requireAttachment(runtime, network, { ...options, nodeName: 'n1', services: { written: services.promise } });
  const create = (more: Partial<SandboxConfig> = {}): Promise<string> => {
    const config = { pod: POD, labels: {}, ...more } as SandboxConfig;
    return runtime.createContainer('s', config, {} as ContainerConfig, stop.signal);
  };
  return { timers, create, created, services, sections };
}

test('a container is created only after the first rules for Services are written', async () => {
  const { create, created, services, sections } = await connected();
  const creation = create();
  await settled();
  expect(created).toEqual([]);
  services.resolve();
  expect(await creation).toBe('container');
  expect(sections.at(-1)?.has(`address ${ADDRESS}`)).toBe(true);
});

test('a container is not created if the first rules for Services are not written within 30 s', async () => {
  const { timers, create, created } = await connected();
  const creations = Promise.allSettled([create(), create({ hostNetwork: true })]);
  timers.advance(30_000);
  const message = 'the node has not written its rules for Services after 30 s; its log has the cause';
  expect(await creations).toEqual([1, 2].map(() => ({ status: 'rejected', reason: new Error(message) })));
  expect(created).toEqual([]);
});

test('the first rules contain the sandboxes of an earlier engine whose Pods the API does not have', async () => {
  const { sections } = await connected({ left: { s: { ...POD, labels: {} }, ended: { ...POD, labels: {} } } });
  await expect.poll(() => sections[0]?.has(`address ${ADDRESS}`)).toBe(true);
});

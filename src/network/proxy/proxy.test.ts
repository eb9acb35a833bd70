import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { CoreV1Event, EndpointSlice, Service } from '../../api/generated/types.ts';
import { EVENTS, SERVICE_CIDRS, SERVICES } from '../../api/resources.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import { clientOf } from '../../client/typed-client.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import type { Part, Section } from '../nftables/section.ts';
import { startProxy } from './proxy.ts';
import { endpoint, portOf, serviceOf, sliceOf } from './proxy-fixture.ts';

const NODE = {
  nodeName: 'n1',
  podCidrs: [],
  serviceCidrs: [],
  reservedIps: [],
  api: { ips: ['127.0.0.1'], port: 6443 },
};

/** Returns informers with one Service, which changes whenever it is read while `isChanging` returns true. */
function changingService(service: Service, isChanging: () => boolean, slices: EndpointSlice[] = []): SharedInformers {
  return {
    follow: (resource: unknown, _: unknown, handlers: { added(one: Service): void }) => {
      if (resource === SERVICES) handlers.added(service);
      const get = (): Service => {
        if (isChanging()) handlers.added(service);
        return service;
      };
      return { synced: Promise.resolve(), get, list: () => [service], by: () => slices };
    },
  } as unknown as SharedInformers;
}

it('rules are written although a Service changes whenever it is read', async () => {
  const ended = new AbortController();
  const timers = systemTimers();
  const backend = await registryBackend({ timers, namespaces: [] });
  const written: Section[] = [];
  const proxy = startProxy({
    client: clientOf(backend),
    informers: changingService(serviceOf('web'), () => written.length < 2),
    table: {
      name: 'lifepod-0',
      set: async (_, section) => {
        written.push(section);
        return new Map();
      },
    },
    timers,
    log: silentLog,
    ...NODE,
    signal: ended.signal,
  });
  await proxy.written;
  ended.abort();
  expect([...(written[0]?.keys() ?? [])]).toContain('service default/web');
});

it('rules are written while conntrack hangs', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'lifepod-proxy-'));
  await writeFile(join(folder, 'conntrack'), '#!/bin/sh\nexec sleep 600\n', { mode: 0o755 });
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env['PATH']}`);
  const ended = new AbortController();
  onTestFinished(async () => {
    ended.abort();
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true });
  });
  const timers = systemTimers();
  const service = serviceOf('dns', { ports: [portOf(53, { protocol: 'UDP' })] });
  const secondWritten = Promise.withResolvers<void>();
  let written = 0;
  startProxy({
    client: clientOf(await registryBackend({ timers, namespaces: [] })),
    informers: changingService(service, () => written < 2, [sliceOf(service, [endpoint('10.244.0.5')])]),
    table: {
      name: 'lifepod-0',
      set: async () => {
        if (++written === 2) secondWritten.resolve();
        return new Map();
      },
    },
    timers,
    log: silentLog,
    ...NODE,
    signal: ended.signal,
  });
  await secondWritten.promise;
});

it('the ranges of added ServiceCIDRs get routes', async () => {
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers });
  const added = Promise.withResolvers<readonly string[]>();
  const proxy = startProxy({
    ...withInformers({ client: clientOf(backend), timers, log: silentLog, signal: ended.signal }),
    table: { name: 'lifepod-0', set: async () => new Map() },
    routes: {
      set: async (cidrs) => {
        if (cidrs.includes('10.97.0.0/24')) added.resolve(cidrs);
      },
    },
    ...NODE,
  });
  await proxy.written;
  await backend.create(SERVICE_CIDRS, undefined, {
    metadata: { name: 'more' },
    spec: { cidrs: ['10.97.0.0/24'] },
  } as never);
  expect(await added.promise).toEqual(expect.arrayContaining([...NODE.serviceCidrs, '10.97.0.0/24']));
});

it('a Service whose rules nft rejects gets an Event, and is derived again after a pause', async () => {
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers });
  const tried: Part[] = [];
  const proxy = startProxy({
    ...withInformers({ client: clientOf(backend), timers, log: silentLog, signal: ended.signal }),
    table: {
      name: 'lifepod-0',
      set: async (_, section) => {
        const part = section.get('service a/bad');
        if (part === undefined || tried.length > 2) return new Map();
        if (tried.at(-1) !== part) tried.push(part);
        return new Map([['service a/bad', new Error('Error: syntax error')]]);
      },
    },
    ...NODE,
  });
  await proxy.written;
  const { metadata: _, ...service } = serviceOf('bad', { clusterIP: '10.96.0.77', clusterIPs: ['10.96.0.77'] });
  await backend.create(SERVICES, 'a', { ...service, metadata: { name: 'bad', namespace: 'a' } } as never);
  const events = (): unknown[] =>
    (backend.objects(EVENTS) as CoreV1Event[]).map(({ involvedObject, reason, message, count }) => {
      return { name: involvedObject.name, reason, message, count };
    });
  const expected = {
    name: 'bad',
    reason: 'RulesRejected',
    message:
      'node n1 has no rules for this Service, because nft rejects them; other Services are not affected; ' +
      'change the Service or its endpoints: Error: syntax error',
  };
  await expect.poll(events).toEqual([{ ...expected, count: 1 }]);
  timers.advance(1000);
  await expect.poll(() => tried.length).toBe(2);
  await expect.poll(events).toEqual([{ ...expected, count: 2 }]);
});

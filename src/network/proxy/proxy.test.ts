import { expect, it } from 'vitest';
import type { Service } from '../../api/generated/types.ts';
import { SERVICES } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import { clientOf } from '../../client/typed-client.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { silentLog } from '../../platform/silent-log.ts';

import type { Section } from '../nftables/section.ts';
import { startProxy } from './proxy.ts';
import { serviceOf } from './proxy-fixture.ts';

/** Informers with one Service, which changes whenever it is read while `isChanging` returns true. */
function changingService(service: Service, isChanging: () => boolean): SharedInformers {
  return {
    follow: (resource: unknown, _: unknown, handlers: { added(one: Service): void }) => {
      if (resource === SERVICES) handlers.added(service);
      const get = (): Service => {
        if (isChanging()) handlers.added(service);
        return service;
      };
      return { synced: Promise.resolve(), get, list: () => [service], by: () => [] };
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
    table: { name: 'lifepod-0', set: async (_, section) => void written.push(section) },
    timers,
    log: silentLog,
    nodeName: 'n1',
    podCidrs: [],
    serviceCidrs: [],
    reservedIps: [],
    api: { ips: ['127.0.0.1'], port: 6443 },
    signal: ended.signal,
  });
  await proxy.written;
  ended.abort();
  expect([...(written[0]?.keys() ?? [])]).toContain('service default/web');
});

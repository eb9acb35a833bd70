import { expect, test, vi } from 'vitest';
import { ENDPOINT_SLICES, ENDPOINTS, SERVICES } from '../../api/resources.ts';
import { bootstrap } from '../../apiserver/registry/bootstrap.ts';
import { ensureDnsService } from '../../apiserver/registry/dns-service.ts';
import { ensureKubernetesEndpoints } from '../../apiserver/registry/system-endpoints/kubernetes-endpoints.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { ResourceRef } from '../../machinery/meta.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { startSystemObjects } from './system-objects.ts';

const serviceCidr = '10.96.0.0/24';

test('the Services kubernetes and kube-dns, and their endpoints, are created again when a client deletes them', async () => {
  const backend = await registryBackend();
  const stop = new AbortController();
  await startSystemObjects({
    ...withInformers({
      client: clientOf(backend),
      timers: createVirtualTimers(),
      log: silentLog,
      signal: stop.signal,
    }),
    async bootstrap() {
      await bootstrap(backend, { serviceCidr, apiServerPort: 6443 });
      await ensureDnsService(backend, serviceCidr);
      await ensureKubernetesEndpoints(backend, { ip: '10.222.0.1', port: 6443 });
    },
  });
  const uidOf = (ref: ResourceRef, name: string) =>
    backend.objects(ref).find(({ metadata }) => metadata.name === name)?.metadata.uid;
  for (const [ref, namespace, name] of [
    [SERVICES, 'default', 'kubernetes'],
    [ENDPOINTS, 'default', 'kubernetes'],
    [ENDPOINT_SLICES, 'default', 'kubernetes'],
    [SERVICES, 'kube-system', 'kube-dns'],
    [ENDPOINT_SLICES, 'kube-system', 'kube-dns'],
  ] as const) {
    const before = uidOf(ref, name);
    expect(before).toBeDefined();
    await backend.remove(ref, namespace, name);
    await vi.waitFor(() => expect([undefined, before]).not.toContain(uidOf(ref, name)));
  }
  stop.abort();
});

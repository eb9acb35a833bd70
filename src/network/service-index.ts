/** An index of Services for DNS lookups. An informer keeps the index up to date. */
import type { Service } from '../api/generated/types.ts';
import type { ZoneServices } from './zone.ts';

export interface ServiceIndex extends ZoneServices {
  put(service: Service): void;
  remove(service: Service): void;
}

export function createServiceIndex(): ServiceIndex {
  const namespaces = new Map<string, Map<string, Service>>();
  const byIp = new Map<string, Service>();
  const ips = (service: Service): string[] =>
    (service.spec?.clusterIPs ?? [service.spec?.clusterIP ?? '']).filter((ip) => ip !== '' && ip !== 'None');

  function remove(service: Service): void {
    const { namespace = '', name } = service.metadata;
    const known = namespaces.get(namespace)?.get(name);
    if (known === undefined) return;
    for (const ip of ips(known)) if (byIp.get(ip) === known) byIp.delete(ip);
    const services = namespaces.get(namespace);
    services?.delete(name);
    if (services?.size === 0) namespaces.delete(namespace);
  }

  return {
    get: (namespace, name) => namespaces.get(namespace)?.get(name),
    hasNamespace: (namespace) => namespaces.has(namespace),
    byClusterIp: (ip) => byIp.get(ip),
    remove,
    put(service) {
      remove(service);
      const { namespace = '', name } = service.metadata;
      const services = namespaces.get(namespace) ?? new Map<string, Service>();
      namespaces.set(namespace, services.set(name, service));
      for (const ip of ips(service)) byIp.set(ip, service);
    },
  };
}

/** The Services as the DNS zone looks them up: by name, namespace and address, in the indexes of an informer. */
import type { Service } from '../api/generated/types.ts';
import type { Informer } from '../client/informer.ts';
import type { ZoneServices } from './zone.ts';

const namespaceOf = ({ metadata }: Service): readonly string[] => [metadata.namespace ?? ''];
const clusterIpsOf = ({ spec }: Service): readonly string[] =>
  (spec?.clusterIPs ?? [spec?.clusterIP ?? '']).filter((ip) => ip !== '' && ip !== 'None');

export const zoneServices = (services: Pick<Informer<Service>, 'get' | 'by'>): ZoneServices => ({
  get: (namespace, name) => services.get(namespace, name),
  hasNamespace: (namespace) => services.by(namespaceOf, namespace).size > 0,
  byClusterIp(ip) {
    const [service] = services.by(clusterIpsOf, ip);
    return service;
  },
});

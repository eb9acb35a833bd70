/**
 * Repairs the IPAddresses of Services, and reports with Events which Services share an address or a node port. The API server allocates
 * both consistently. This controller handles objects that clients have changed, and stores that an older version has written.
 *
 * Reads: services, ipaddresses, servicecidrs. Writes: ipaddresses, events.
 * Invariant: an IPAddress is written only after the objects have been read from the API, because the informers' caches of Services and
 * IPAddresses may show different revisions.
 */
import type { IPAddress, Service, ServiceCIDR } from '../../api/generated/types.ts';
import { ALLOCATOR, FAMILY_LABEL, MANAGED_BY_LABEL } from '../../api/networking.k8s.io/v1/ip-address/index.ts';
import { IP_ADDRESSES, SERVICE_CIDRS, SERVICES } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { type IpAddress, parseIp, parseIpRange, rangeContains } from '../../machinery/ip.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ControllerOptions } from '../controller.ts';
import { type Finding, nodePortsOf, type Others, reviewIpAddress, reviewService } from './review.ts';

const portKeys = (service: Service): string[] => nodePortsOf(service).map(String);

function absent(error: unknown): undefined {
  if (isApiError(error, 'NotFound')) return undefined;
  throw error;
}

export async function startServiceAddresses(options: ControllerOptions): Promise<void> {
  const { informers, timers, log, signal } = options;
  /** Resolves once the informers' caches are complete. */
  const complete = Promise.withResolvers<void>();
  const queue = createWorkQueue({ name: 'service-addresses', process: review, log, timers, signal });
  const addService = ({ metadata }: Service): void => queue.add(`${metadata.namespace}/${metadata.name}`);
  const addAddress = ({ metadata }: IPAddress): void => queue.add(metadata.name);
  const cidrs = informers.follow<ServiceCIDR>(SERVICE_CIDRS, { signal });
  await cidrs.synced;
  const services = informers.follow<Service>(
    SERVICES,
    { signal },
    { added: addService, updated: addService, deleted: ({ spec }) => (spec?.clusterIPs ?? []).forEach(queue.add) },
  );
  const addresses = informers.follow<IPAddress>(
    IP_ADDRESSES,
    { signal },
    {
      added: addAddress,
      updated: addAddress,
      deleted({ spec }) {
        const { namespace, name } = spec?.parentRef ?? {};
        if (namespace && name) queue.add(`${namespace}/${name}`);
      },
    },
  );
  await Promise.all([services.synced, addresses.synced]);

  const isInRange = (ip: IpAddress): boolean =>
    cidrs.list().some(({ spec }) =>
      (spec?.cidrs ?? []).some((text) => {
        const range = parseIpRange(text);
        return range !== undefined && rangeContains(range, ip);
      }),
    );
  const age = ({ metadata }: Service): string => `${metadata.creationTimestamp} ${metadata.namespace}/${metadata.name}`;
  const local: Others = {
    addressOf: (address) => addresses.get(undefined, address),
    serviceOf: (namespace, name) => services.get(namespace, name),
    isInRange,
    isPortOfOlder: (port, service) =>
      [...services.by(portKeys, String(port))].some((other) => age(other) < age(service)),
  };

  const { repair, reviewAddressAt } = createRepairs(options, local);
  complete.resolve();

  /** `key`: NAMESPACE/NAME of a Service, or an address. */
  async function review(key: string): Promise<void> {
    await complete.promise;
    const [namespace = '', name] = key.split('/');
    if (name === undefined) return reviewAddressAt(key);
    const service = services.get(namespace, name);
    if (service === undefined) return;
    for (const finding of reviewService(service, local)) await repair(service, finding);
  }
}

/** The functions check a finding against the API before they repair or delete an IPAddress. `local`: reads from the informers' caches. */
function createRepairs({ client, timers, log, signal }: ControllerOptions, local: Others) {
  const addressClient = client.resource<IPAddress>(IP_ADDRESSES);
  const serviceClient = client.resource<Service>(SERVICES);
  const events = createEventRecorder(client, { component: 'ipallocator-repair-controller', timers, log, signal });

  async function repair(service: Service, { reason, message, repair: address }: Finding): Promise<void> {
    if (address !== undefined) {
      const { name, namespace } = service.metadata;
      const current = await serviceClient.get(name, namespace).catch(absent);
      const existing = await addressClient.get(address).catch(absent);
      const parent = existing?.spec?.parentRef;
      const holder =
        parent?.namespace && parent.name
          ? await serviceClient.get(parent.name, parent.namespace).catch(absent)
          : undefined;
      const others: Others = { ...local, addressOf: () => existing, serviceOf: () => holder };
      if (current === undefined || !reviewService(current, others).some((each) => each.repair === address)) return;
      log.warn('service-addresses: repairing an IPAddress', { address, service: `${namespace}/${name}` });
      if (existing !== undefined) await addressClient.delete(address, undefined, preconditionsOf(existing));
      await addressClient.create(newAddress(address, current));
    }
    events.event(service, 'Warning', reason, message);
  }

  async function reviewAddressAt(address: string): Promise<void> {
    const seen = local.addressOf(address);
    if (seen === undefined || reviewIpAddress(seen, local.serviceOf) === undefined) return;
    const current = await addressClient.get(address).catch(absent);
    if (current === undefined) return;
    const { namespace, name } = current.spec?.parentRef ?? {};
    const holder = namespace && name ? await serviceClient.get(name, namespace).catch(absent) : undefined;
    const finding = reviewIpAddress(current, () => holder);
    if (finding === undefined) return;
    log.warn('service-addresses: deleting an IPAddress', { address, reason: finding.reason });
    events.event(current, 'Warning', finding.reason, finding.message);
    await addressClient.delete(address, undefined, preconditionsOf(current)).catch(absent);
  }

  return { repair, reviewAddressAt };
}

const preconditionsOf = ({ metadata }: IPAddress) => ({ preconditions: { uid: metadata.uid } });

const newAddress = (address: string, { metadata: { namespace, name } }: Service): IPAddress => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'IPAddress',
  metadata: {
    name: address,
    labels: { [FAMILY_LABEL]: parseIp(address)?.family ?? 'IPv4', [MANAGED_BY_LABEL]: ALLOCATOR },
  },
  spec: { parentRef: { resource: 'services', namespace, name } },
});

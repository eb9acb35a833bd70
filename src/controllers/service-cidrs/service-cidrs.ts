/**
 * Marks ServiceCIDRs as ready. Keeps deleted ServiceCIDRs, with a finalizer, while their addresses are in use.
 *
 * Reads: servicecidrs, ipaddresses. Writes: servicecidrs (finalizers, status).
 * Source: pkg/controller/servicecidrs of v1.33 (behavior and wording), except that upstream waits 10 s before it removes the finalizer:
 * here no address is allocated from a ServiceCIDR whose deletion has begun.
 */
import type { Condition, IPAddress, ServiceCIDR } from '../../api/generated/types.ts';
import { IP_ADDRESSES, SERVICE_CIDRS } from '../../api/resources.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import { formatTime } from '../../machinery/time.ts';
import type { ControllerOptions } from '../controller.ts';
import { decide, type Verdict } from './decide.ts';

export async function startServiceCidrs({ client, informers, timers, log, signal }: ControllerOptions): Promise<void> {
  const cidrClient = client.resource<ServiceCIDR>(SERVICE_CIDRS);
  const queue = createWorkQueue({ name: 'service-cidrs', process: reconcile, log, timers, signal });
  const add = ({ metadata }: ServiceCIDR): void => queue.add(metadata.name);
  /** The deletion of a ServiceCIDR depends on the other ServiceCIDRs and on the IPAddresses. */
  const addDeleted = (): void => {
    for (const cidr of cidrs.list()) if (cidr.metadata.deletionTimestamp !== undefined) add(cidr);
  };
  const addWithDeleted = (cidr: ServiceCIDR): void => {
    add(cidr);
    addDeleted();
  };
  const cidrs = informers.follow<ServiceCIDR>(
    SERVICE_CIDRS,
    { signal },
    { added: addWithDeleted, updated: addWithDeleted, deleted: addDeleted },
  );
  const addresses = informers.follow<IPAddress>(IP_ADDRESSES, { signal }, { deleted: addDeleted });
  await Promise.all([cidrs.synced, addresses.synced]);
  for (const cidr of cidrs.list()) add(cidr);

  async function reconcile(name: string): Promise<void> {
    const cidr = cidrs.get(undefined, name);
    if (cidr === undefined) return;
    const others = cidrs.list().filter((other) => other !== cidr);
    try {
      // The informer may not have received an address yet that was allocated before the deletion began.
      const inUse =
        cidr.metadata.deletionTimestamp === undefined
          ? addresses.list()
          : (await client.resource<IPAddress>(IP_ADDRESSES).list()).items;
      await carryOut(cidr, decide(cidr, others, inUse));
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }

  async function carryOut(cidr: ServiceCIDR, { finalizers, ready }: Verdict): Promise<void> {
    let current = cidr;
    if (finalizers !== undefined) {
      log.info('service-cidrs: the finalizers of a ServiceCIDR change', { name: cidr.metadata.name, finalizers });
      current = await cidrClient.update({ ...cidr, metadata: { ...cidr.metadata, finalizers } });
    }
    if (ready === undefined) return;
    const conditions = current.status?.conditions ?? [];
    const before = conditions.find(({ type }) => type === 'Ready');
    if (before?.status === ready.status && before.reason === ready.reason && before.message === ready.message) return;
    const lastTransitionTime = before?.status === ready.status ? before.lastTransitionTime : formatTime(timers.now());
    const next: Condition = { ...ready, lastTransitionTime };
    const others = conditions.filter(({ type }) => type !== 'Ready');
    await cidrClient.updateStatus({ ...current, status: { ...current.status, conditions: [...others, next] } });
  }
}

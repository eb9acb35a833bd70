/** Finds the Services of type LoadBalancer that get no address, for example because another Service has their port. */
import type { CoreV1Event, Service } from '../../api/generated/types.ts';
import { EVENTS, SERVICES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { hasIngress, isBalanced } from '../../controllers/service-load-balancers/assign.ts';
import { isApiError } from '../../machinery/status.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import type { Hints } from '../hints.ts';
import { lastTime, oneLine } from '../why/subject.ts';
import { eventsAbout } from '../workloads/events-about.ts';
import type { WorkloadReading } from './read-workloads.ts';

/** A new Service usually gets its address within this time. */
const ADDRESS_MILLIS = 10_000;

/** Resolves with the LoadBalancer Services without an address, as troubles. `namespace`: undefined for all namespaces. */
export async function readServices(
  client: Client,
  namespace: string | undefined,
  hints: Hints,
  now: Millis,
): Promise<WorkloadReading> {
  const where = namespace === undefined ? {} : { namespace };
  try {
    const { items } = await client.resource<Service>(SERVICES).list(where);
    const pending = items.filter((service) => isBalanced(service) && !hasIngress(service));
    if (pending.length === 0) return { troubles: [], unread: [] };
    const fieldSelector = 'reason=SyncLoadBalancerFailed';
    // A user who may not read Events sees the Services without the cause.
    const events = await client
      .resource<CoreV1Event>(EVENTS)
      .list({ ...where, fieldSelector })
      .then(
        ({ items: found }) => found,
        (error: unknown) => {
          if (isApiError(error, 'Forbidden')) return [];
          throw error;
        },
      );
    const eventsOf = eventsAbout(events);
    const troubles = pending.flatMap((service) => {
      const { name, namespace: within = 'default', uid, creationTimestamp } = service.metadata;
      const [event] = eventsOf(service).toSorted((a, b) => lastTime(b) - lastTime(a));
      const since = parseTime(creationTimestamp) ?? now;
      if (event === undefined && now - since < ADDRESS_MILLIS) return [];
      const cause = oneLine(event?.message).replace(/^Error syncing load balancer: /, '');
      return [
        {
          kind: 'Service' as const,
          namespace: within,
          name,
          uid,
          reason: event?.reason ?? 'Pending',
          since: event === undefined ? since : lastTime(event),
          message: `${name} has no address${cause && `: ${cause}`}`,
          command: hints.kubectl(`describe service ${name} -n ${within}`),
        },
      ];
    });
    return { troubles, unread: [] };
  } catch (error) {
    if (!isApiError(error, 'Forbidden')) throw error;
    return { troubles: [], unread: [`Services: ${error.message}: those without an address are not reported`] };
  }
}

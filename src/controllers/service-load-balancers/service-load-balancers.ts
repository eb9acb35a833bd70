/**
 * Fills in the status of Services of type LoadBalancer: the addresses of the nodes. A Service whose port another Service has already stays
 * pending, with an Event, until the port is free.
 *
 * Reads: services, nodes. Writes: services (status), events.
 * Source: the service controller of k8s.io/cloud-provider of v1.33 (reasons of the Events); its load balancers are external, and never
 * compete for ports.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Node, Service } from '../../api/generated/types.ts';
import { NODES, SERVICES } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ControllerOptions } from '../controller.ts';
import { type Assignment, assignLoadBalancers, hasIngress, isBalanced, nameOf, nodeAddresses } from './assign.ts';

const typeOf = ({ spec }: Service): readonly string[] => [spec?.type ?? ''];

export async function startServiceLoadBalancers(options: ControllerOptions): Promise<void> {
  const { informers, timers, log, signal } = options;
  const { carryOut, forget } = createWriter(options);
  const queue = createWorkQueue({ name: 'service-load-balancers', process: assignAll, log, timers, signal });
  /** Whether the local copies are complete: an absent node would withdraw addresses. */
  let isComplete = false;
  const enqueue = (): void => {
    if (isComplete) queue.add('all');
  };
  const whenBalanced = (service: Service): void => {
    if (isBalanced(service) || hasIngress(service)) enqueue();
  };
  const nodes = informers.follow<Node>(
    NODES,
    { signal },
    {
      added: enqueue,
      updated: (node, old) => {
        if (!isDeepStrictEqual(nodeAddresses([node]), nodeAddresses([old]))) enqueue();
      },
      deleted: enqueue,
    },
  );
  const services = informers.follow<Service>(
    SERVICES,
    { signal },
    {
      added: whenBalanced,
      updated(service, old) {
        whenBalanced(service);
        whenBalanced(old);
      },
      deleted(service) {
        forget(service);
        whenBalanced(service);
      },
    },
  );
  await Promise.all([nodes.synced, services.synced]);
  isComplete = true;
  enqueue();

  async function assignAll(): Promise<void> {
    const balanced = [...services.by(typeOf, 'LoadBalancer')].filter(isBalanced);
    // Addresses are withdrawn before others get them.
    const assignments = assignLoadBalancers(balanced, nodes.list());
    for (const each of [...assignments].sort((a, b) => a.ingress.length - b.ingress.length)) await carryOut(each);
  }
}

/** Returns a function that writes the status of a Service and reports the change. */
function createWriter({ client, timers, log, signal }: ControllerOptions) {
  const serviceClient = client.resource<Service>(SERVICES);
  const events = createEventRecorder(client, { component: 'service-controller', timers, log, signal });
  /** By the UID of a waiting Service: what it waits for, which is reported once. */
  const reported = new Map<string, string>();
  async function carryOut({ service, ingress, waitsFor }: Assignment): Promise<void> {
    const { uid = '' } = service.metadata;
    if (!isDeepStrictEqual(service.status?.loadBalancer?.ingress ?? [], ingress)) {
      log.info('service-load-balancers: the addresses of a Service change', { service: nameOf(service), ingress });
      const loadBalancer = ingress.length === 0 ? {} : { ingress };
      try {
        await serviceClient.updateStatus({ ...service, status: { ...service.status, loadBalancer } });
      } catch (error) {
        if (isApiError(error, 'NotFound')) return;
        throw error;
      }
      if (ingress.length > 0) events.event(service, 'Normal', 'EnsuredLoadBalancer', 'Ensured load balancer');
    }
    if (waitsFor === undefined) reported.delete(uid);
    else if (reported.get(uid) !== waitsFor) {
      reported.set(uid, waitsFor);
      events.event(service, 'Warning', 'SyncLoadBalancerFailed', `Error syncing load balancer: ${waitsFor}`);
    }
  }
  return { carryOut, forget: ({ metadata: { uid = '' } }: Service): void => void reported.delete(uid) };
}

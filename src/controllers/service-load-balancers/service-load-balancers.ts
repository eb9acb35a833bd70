/**
 * Writes the addresses of the nodes into the status of Services of type LoadBalancer. A Service whose port is in use stays pending, with an
 * Event, until the port is free. Node ports and host ports that a Service hides get an Event.
 *
 * Reads: services, nodes, pods. Writes: services (status), events.
 * Source: the service controller of k8s.io/cloud-provider of v1.33 (reasons of the Events). Its load balancers are external, and do not
 * compete for ports.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Node, Pod, Service } from '../../api/generated/types.ts';
import { NODES, PODS, SERVICES } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ControllerOptions } from '../controller.ts';
import {
  type Assignment,
  assignLoadBalancers,
  hasIngress,
  isBalanced,
  nameOf,
  nodeAddresses,
  portsOf,
} from './assign.ts';
import {
  byHostPorts,
  type HiddenUse,
  hasHostPorts,
  hiddenUses,
  otherUseIn,
  portUses,
  WITH_HOST_PORTS,
} from './port-uses.ts';

const hasNodePorts = ({ spec }: Service): boolean => (spec?.ports ?? []).some(({ nodePort = 0 }) => nodePort > 0);

const typeOf = ({ spec }: Service): readonly string[] => [spec?.type ?? ''];

export async function startServiceLoadBalancers(options: ControllerOptions): Promise<void> {
  const { informers, timers, log, signal } = options;
  const { carryOut, report } = createWriter(options);
  const queue = createWorkQueue({ name: 'service-load-balancers', process: assignAll, log, timers, signal });
  /** Whether the informers' caches are complete. Until then, Services would lose the addresses of nodes that have not been read yet. */
  let isComplete = false;
  const enqueue = (): void => {
    if (isComplete) queue.add('all');
  };
  const whenBalanced = (service: Service): void => {
    if (isBalanced(service) || hasIngress(service) || hasNodePorts(service)) enqueue();
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
      deleted: whenBalanced,
    },
  );
  const whenHostPorts = (pod: Pod): void => {
    if (hasHostPorts(pod)) enqueue();
  };
  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    {
      added: whenHostPorts,
      updated(pod, old) {
        if (hasHostPorts(pod) !== hasHostPorts(old)) enqueue();
      },
      deleted: whenHostPorts,
    },
  );
  await Promise.all([nodes.synced, services.synced, pods.synced]);
  isComplete = true;
  enqueue();

  async function assignAll(): Promise<void> {
    const balanced = [...services.by(typeOf, 'LoadBalancer')];
    const exposed = [...balanced, ...services.by(typeOf, 'NodePort')];
    const uses = portUses(exposed, [...pods.by(byHostPorts, WITH_HOST_PORTS)], nodes.list());
    const assignments = assignLoadBalancers(balanced.filter(isBalanced), nodes.list(), otherUseIn(uses));
    const errors = await carryOut(assignments);
    report(hiddenUses(uses, assignments));
    if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join('; '));
  }
}

function createWriter({ client, timers, log, signal }: ControllerOptions) {
  const serviceClient = client.resource<Service>(SERVICES);
  const events = createEventRecorder(client, { component: 'service-controller', timers, log, signal });
  /** By the UID of a waiting Service: the cause that was reported. Each cause is reported once. */
  const reported = new Map<string, string>();
  async function carryOutOne({ service, ingress, waitsFor }: Assignment): Promise<void> {
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
    if (waitsFor !== undefined && reported.get(uid) !== waitsFor) {
      reported.set(uid, waitsFor);
      events.event(service, 'Warning', 'SyncLoadBalancerFailed', `Error syncing load balancer: ${waitsFor}`);
    }
  }
  /** Carries out as many assignments as possible, and resolves with the errors. */
  async function carryOut(assignments: readonly Assignment[]): Promise<unknown[]> {
    const waiting = new Set(assignments.flatMap(({ service, waitsFor }) => (waitsFor ? [service.metadata.uid] : [])));
    for (const uid of reported.keys()) if (!waiting.has(uid)) reported.delete(uid);
    const errors: unknown[] = [];
    /** Ports of Services that still have addresses, but must lose them. */
    const occupied = new Set<string>();
    // Services lose addresses before other Services get them.
    for (const each of [...assignments].sort((a, b) => a.ingress.length - b.ingress.length)) {
      const ports = portsOf(each.service);
      if (!hasIngress(each.service) && ports.some((port) => occupied.has(port))) continue;
      try {
        await carryOutOne(each);
      } catch (error) {
        errors.push(error);
        if (each.ingress.length === 0) for (const port of ports) occupied.add(port);
      }
    }
    return errors;
  }
  /** The hidden uses at the last call of report(). Each is reported once while it stays hidden. */
  let hidden = new Set<string>();
  function report(uses: readonly HiddenUse[]): void {
    const before = hidden;
    hidden = new Set();
    for (const { use, message } of uses) {
      const key = `${use.object.metadata.uid} ${message}`;
      if (!before.has(key) && !hidden.has(key)) events.event(use.object, 'Warning', 'PortConflict', message);
      hidden.add(key);
    }
  }
  return { carryOut, report };
}

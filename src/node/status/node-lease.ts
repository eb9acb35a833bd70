/**
 * The Lease only shows that the agent is alive, so the renewal waits only for the API, not for the runtime.
 * Invariant: a renewal is tried four times within the Lease's duration, even after a failure.
 * Source: "Leases" of the v1.33 documentation (namespace, durations).
 */

import type { Lease, Node } from '../../api/generated/types.ts';
import { LEASES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { formatMicroTime } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Log, Timer, Timers } from '../../platform/platform.ts';

export interface NodeLeaseOptions {
  client: Client;
  node(): Node;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}

export const LEASE_NAMESPACE = 'kube-node-lease';
const DURATION_SECONDS = 40;
const RENEW_MILLIS = 10_000;

/** Resolves after the first attempt, successful or not. */
export async function startNodeLease({ client, node, timers, log, signal }: NodeLeaseOptions): Promise<void> {
  const leases = client.resource<Lease>(LEASES);
  let lease: Lease | undefined;
  let timer: Timer | undefined;

  async function renew(): Promise<void> {
    const { name } = node().metadata;
    lease ??= await leases.get(name, LEASE_NAMESPACE).catch((error: unknown) => {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    });
    const renewTime = formatMicroTime(timers.now());
    const spec = { holderIdentity: name, leaseDurationSeconds: DURATION_SECONDS, renewTime };
    lease =
      lease === undefined
        ? await leases.create(leaseObject(node(), spec))
        : await leases.update({ ...lease, spec: { ...lease.spec, ...spec } });
  }

  async function turn(): Promise<void> {
    timer = timers.at(timers.now() + RENEW_MILLIS, () => void turn());
    try {
      await renew();
    } catch (error) {
      // Another client may have changed or deleted the Lease: read it again next time.
      lease = undefined;
      if (!signal.aborted) log.warn('cannot renew the lease of the node', { error: String(error) });
    }
  }

  onAbort(signal, () => timer?.cancel());
  if (!signal.aborted) await turn();
}

function leaseObject(node: Node, spec: Lease['spec']): Lease {
  const { name } = node.metadata;
  const owner = { apiVersion: 'v1', kind: 'Node', name, uid: uidOf(node) };
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: LEASE_NAMESPACE, ownerReferences: [owner] },
    ...(spec === undefined ? {} : { spec }),
  };
}

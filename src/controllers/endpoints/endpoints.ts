/**
 * Keeps the Endpoints of each Service with a selector. They contain the ports of the Pods and their addresses of one family, ready or not.
 * Endpoints are deprecated, but many clients read them.
 *
 * Reads: services, pods, endpoints. Writes: endpoints (create, update, delete), events.
 * Invariants:
 *  1. A Service's next reconcile sees the write of the previous one, because a reconcile ends only when the informer's cache contains its
 *     write.
 *  2. Endpoints of Services without a selector, or of the type ExternalName, are left alone.
 *  3. The Endpoints of a deleted Service are deleted. If the engine is killed before that, the next engine deletes only Endpoints with the
 *     label of this controller: other Endpoints without a Service may belong to a user. (Upstream deletes these, too, at its start.)
 * Source: pkg/controller/endpoint of v1.33 (behavior, reasons and wording).
 */
import { ENDPOINTS_CONTROLLER, ENDPOINTS_MANAGED_BY } from '../../api/core/v1/endpoints/labels.ts';
import type { Endpoints, Service } from '../../api/generated/types.ts';
import { ENDPOINTS } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError, isNamespaceTerminating } from '../../machinery/status.ts';
import type { ControllerOptions } from '../controller.ts';
import { followServices, hasSelector } from '../service-pods/follow-services.ts';
import { reconcile } from './reconcile.ts';

/** Resolves once the controller has read the Services, Pods and Endpoints. */
export async function startEndpoints(options: ControllerOptions): Promise<void> {
  const { client, informers, timers, log, signal } = options;
  const resource = client.resource<Endpoints>(ENDPOINTS);
  const events = createEventRecorder(client, { component: 'endpoint-controller', timers, log, signal });
  const queue = createWorkQueue({ name: 'endpoint', process, log, timers, signal });
  /** Keys of Services whose deletion this engine has seen. */
  const orphaned = new Set<string>();
  const { services, podsOf, synced: servicesSynced } = followServices(options, queue.add, (key) => orphaned.add(key));
  const changed = ({ metadata }: Endpoints): void => queue.add(`${metadata.namespace}/${metadata.name}`);
  const endpoints = informers.follow<Endpoints>(ENDPOINTS, { signal }, { added: changed, deleted: changed });
  const synced = Promise.all([servicesSynced, endpoints.synced]);

  async function process(key: string): Promise<void> {
    await synced;
    const [namespace, name] = key.split('/') as [string, string];
    const service = services.get(namespace, name);
    const current = endpoints.get(namespace, name);
    if (service === undefined) return remove(key, current);
    orphaned.delete(key);
    if (service.spec?.type === 'ExternalName' || !hasSelector(service)) return;
    const wanted = reconcile(service, podsOf(service), current);
    if (wanted !== undefined) await write(service, wanted, current === undefined);
  }

  async function remove(key: string, current: Endpoints | undefined): Promise<void> {
    const isManaged = current?.metadata.labels?.[ENDPOINTS_MANAGED_BY] === ENDPOINTS_CONTROLLER;
    if (current !== undefined && (isManaged || orphaned.has(key))) {
      const { namespace, name } = current.metadata;
      await resource.delete(name, namespace, { preconditions: { uid: uidOf(current) } }).catch(ignoreChanged);
      await endpoints.gone(current);
    }
    orphaned.delete(key);
  }

  async function write(service: Service, wanted: Endpoints, isNew: boolean): Promise<void> {
    try {
      const { metadata } = await (isNew ? resource.create(wanted) : resource.update(wanted));
      await endpoints.reached(metadata.resourceVersion);
    } catch (error) {
      // The API rejects every create in a namespace that is being deleted, and the Service is about to be deleted.
      if (isNamespaceTerminating(error)) return;
      // The informer has not received the Endpoints yet. When it does, the Service is queued again.
      if (isApiError(error, 'AlreadyExists')) return;
      const { namespace, name } = service.metadata;
      const text = isNew ? `create endpoint for service` : 'update endpoint';
      const reason = isNew ? 'FailedToCreateEndpoint' : 'FailedToUpdateEndpoint';
      events.event(wanted, 'Warning', reason, `Failed to ${text} ${namespace}/${name}: ${(error as Error).message}`);
      throw error;
    }
  }

  await synced;
}

function ignoreChanged(error: unknown): void {
  if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
}

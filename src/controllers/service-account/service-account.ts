/**
 * Keeps a ServiceAccount `default` in every active namespace, for Pods that name no other.
 *
 * Reads: namespaces, serviceaccounts named default. Writes: serviceaccounts (create).
 * Source: upstream's serviceaccounts_controller (behavior).
 */
import type { Namespace, ServiceAccount } from '../../api/generated/types.ts';
import { createInformer } from '../../client/informer.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ControllerOptions } from '../controller.ts';
import { NAMESPACES, SERVICE_ACCOUNTS } from '../../api/resources.ts';

const NAME = 'default';

export async function startServiceAccountController(options: ControllerOptions): Promise<void> {
  const { client, timers, log, signal } = options;
  const accountClient = client.resource<ServiceAccount>(SERVICE_ACCOUNTS);
  const queue = createWorkQueue({ name: 'service-account', process: ensure, log, timers, signal });
  const addNamespace = ({ metadata }: Namespace): void => queue.add(metadata.name);

  const accounts = createInformer(
    accountClient,
    { log, timers, signal, fieldSelector: `metadata.name=${NAME}` },
    { deleted: ({ metadata }) => queue.add(metadata.namespace as string) },
  );
  await accounts.synced;
  const namespaces = createInformer(
    client.resource<Namespace>(NAMESPACES),
    { log, timers, signal },
    { added: addNamespace, updated: addNamespace },
  );
  await namespaces.synced;
  await queue.idle();

  async function ensure(namespace: string): Promise<void> {
    const found = namespaces.get(undefined, namespace);
    if (found === undefined || found.status?.phase === 'Terminating') return;
    if (accounts.get(namespace, NAME) !== undefined) return;
    try {
      await accountClient.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace } });
    } catch (error) {
      // The object exists, or the namespace is being deleted: the informers will report it.
      if (!isApiError(error, 'AlreadyExists') && !isApiError(error, 'Forbidden') && !isApiError(error, 'NotFound'))
        throw error;
    }
  }
}

/**
 * Keeps the ConfigMap kube-root-ca.crt in every active namespace; Pods use it to verify the API server.
 *
 * Reads: namespaces, configmaps of that name. Writes: configmaps (create, update).
 * Source: upstream's rootcacertpublisher (behavior, name, key and annotation).
 */
import type { ConfigMap, Namespace } from '../../api/generated/types.ts';
import { createInformer } from '../../client/informer.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ControllerOptions } from '../controller.ts';
import { CONFIG_MAPS, NAMESPACES } from '../../api/resources.ts';

const NAME = 'kube-root-ca.crt';
const ANNOTATIONS = {
  'kubernetes.io/description':
    'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.',
};

export async function startRootCaPublisher(options: ControllerOptions & { caPem: string }): Promise<void> {
  const { client, timers, log, signal, caPem } = options;
  const mapClient = client.resource<ConfigMap>(CONFIG_MAPS);
  const queue = createWorkQueue({ name: 'root-ca', process: publish, log, timers, signal });
  const addNamespace = ({ metadata }: Namespace): void => queue.add(metadata.name);
  const addNamespaceOf = ({ metadata }: ConfigMap): void => queue.add(metadata.namespace as string);

  const maps = createInformer(
    mapClient,
    { log, timers, signal, fieldSelector: `metadata.name=${NAME}` },
    { updated: addNamespaceOf, deleted: addNamespaceOf },
  );
  await maps.synced;
  const namespaces = createInformer(
    client.resource<Namespace>(NAMESPACES),
    { log, timers, signal },
    { added: addNamespace, updated: addNamespace },
  );
  await namespaces.synced;
  await queue.idle();

  async function publish(namespace: string): Promise<void> {
    const found = namespaces.get(undefined, namespace);
    if (found === undefined || found.status?.phase === 'Terminating') return;
    const map = maps.get(namespace, NAME);
    const data = { 'ca.crt': caPem };
    try {
      if (map === undefined) {
        const metadata = { name: NAME, namespace, annotations: ANNOTATIONS };
        await mapClient.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
      } else if (map.data?.['ca.crt'] !== caPem || Object.keys(map.data).length > 1) {
        await mapClient.update({ ...map, data });
      }
    } catch (error) {
      // The object exists, or the namespace is being deleted: the informers will report it.
      if (!isApiError(error, 'AlreadyExists') && !isApiError(error, 'Forbidden') && !isApiError(error, 'NotFound'))
        throw error;
    }
  }
}

/**
 * Keeps the ConfigMap kube-root-ca.crt in every active namespace; Pods use it to verify the API server.
 *
 * Reads: namespaces, configmaps of that name. Writes: configmaps (create, update).
 * Source: upstream's rootcacertpublisher (behavior, name, key and annotation).
 */
import type { ConfigMap } from '../../api/generated/types.ts';
import { CONFIG_MAPS } from '../../api/resources.ts';
import type { ControllerOptions } from '../controller.ts';
import { keepInNamespaces } from '../namespace-objects.ts';

const NAME = 'kube-root-ca.crt';
const ANNOTATIONS = {
  'kubernetes.io/description':
    'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.',
};

export async function startRootCaPublisher(options: ControllerOptions & { caPem: string }): Promise<void> {
  const { caPem } = options;
  const data = { 'ca.crt': caPem };
  await keepInNamespaces<ConfigMap>(options, {
    controller: 'root-ca',
    resource: CONFIG_MAPS,
    name: NAME,
    make: (namespace) => {
      const metadata = { name: NAME, namespace, annotations: ANNOTATIONS };
      return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
    },
    correct: (map) =>
      map.data?.['ca.crt'] === caPem && Object.keys(map.data).length === 1 ? undefined : { ...map, data },
  });
}

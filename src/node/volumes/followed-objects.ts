/** Watches ConfigMaps and Secrets, and reports which of them have changed. */
import { coreResource } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createInformer, type InformerOptions } from '../../client/informer.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { type FileSource, fileSourceKey } from './references.ts';

/**
 * Calls `changed` with the key (fileSourceKey) of each ConfigMap and Secret that is added, updated or deleted. Existing objects
 * count as added at the start. Keeps only the identity and the resource version of each object in memory: the content is read when
 * a volume is written.
 */
export function followObjects(client: Client, options: InformerOptions, changed: (key: string) => void): void {
  const follow = (resource: FileSource): void => {
    const notify = ({ metadata }: KubeObject): void =>
      changed(fileSourceKey(resource, metadata.namespace, metadata.name));
    createInformer<KubeObject, KubeObject>(
      client.resource(coreResource(resource)),
      options,
      { added: notify, updated: notify, deleted: notify },
      ({ apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } }) =>
        ({ apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } }) as KubeObject,
    );
  };
  follow('configmaps');
  follow('secrets');
}

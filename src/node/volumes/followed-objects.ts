/** Tells of the ConfigMaps and Secrets that come, change and go. */
import type { Client } from '../../client/client.ts';
import { createInformer, type InformerOptions } from '../../client/informer.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { type FileSource, fileSourceKey } from './references.ts';

/**
 * Calls `changed` with the key (fileSourceKey) of each. Only names are kept of the objects: what a volume shows is read when it is
 * written.
 */
export function followObjects(client: Client, options: InformerOptions, changed: (key: string) => void): void {
  const follow = (resource: FileSource): void => {
    const tell = ({ metadata }: KubeObject): void =>
      changed(fileSourceKey(resource, metadata.namespace, metadata.name));
    createInformer<KubeObject, KubeObject>(
      client.resource({ group: '', version: 'v1', resource }),
      options,
      { added: tell, updated: tell, deleted: tell },
      ({ apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } }) =>
        ({ apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } }) as KubeObject,
    );
  };
  follow('configmaps');
  follow('secrets');
}

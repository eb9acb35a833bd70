/** Follows ConfigMaps and Secrets, and reports which of them have changed. */
import { coreResource } from '../../api/resources.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { type FileSource, fileSourceKey } from './references.ts';

/**
 * Calls `changed` with the key (fileSourceKey) of each ConfigMap and Secret that is added, updated or deleted, until the signal aborts.
 * Existing objects count as added at the start.
 */
export function followObjects(informers: SharedInformers, signal: AbortSignal, changed: (key: string) => void): void {
  const follow = (resource: FileSource): void => {
    const notify = ({ metadata }: KubeObject): void =>
      changed(fileSourceKey(resource, metadata.namespace, metadata.name));
    informers.follow(coreResource(resource), { signal }, { added: notify, updated: notify, deleted: notify });
  };
  follow('configmaps');
  follow('secrets');
}

import type { DownwardAPIVolumeFile, Pod, Volume } from '../../api/generated/types.ts';
import { type DownwardFacts, fieldValue } from '../container/downward.ts';

export type FileSource = 'configmaps' | 'secrets';

export const fileSourceKey = (resource: FileSource, namespace: string | undefined, name: string | undefined): string =>
  `${resource}/${namespace ?? ''}/${name ?? ''}`;

export function partsOfKey(key: string): { resource: FileSource; namespace: string; name: string } {
  const [resource, namespace = '', name = ''] = key.split('/');
  return { resource: resource as FileSource, namespace, name };
}

/** Whether the node writes the files of the volume, and rewrites them when their sources change. */
export const showsObjects = (volume: Volume): boolean =>
  [volume.configMap, volume.secret, volume.downwardAPI, volume.projected].some((source) => source !== undefined);

/** Secrets and tokens must not reach the disk. */
export const isInMemory = ({ secret, projected }: Volume): boolean => secret !== undefined || projected !== undefined;

/** Returns the keys (fileSourceKey) of the ConfigMaps and Secrets to which the Pod's volumes refer. */
export function shownObjects({ metadata, spec }: Pod): Set<string> {
  const keys = new Set<string>();
  const add = (resource: FileSource, name: string | undefined): void => {
    if (name !== undefined) keys.add(fileSourceKey(resource, metadata.namespace, name));
  };
  for (const volume of spec?.volumes ?? []) {
    add('configmaps', volume.configMap?.name);
    add('secrets', volume.secret?.secretName);
    for (const { configMap, secret } of volume.projected?.sources ?? []) {
      add('configmaps', configMap?.name);
      add('secrets', secret?.name);
    }
  }
  return keys;
}

/** Returns the items of the volume that refer to fields of the Pod or to resources of its containers (downward API). */
export const downwardItems = ({ downwardAPI, projected }: Volume): DownwardAPIVolumeFile[] => [
  ...(downwardAPI?.items ?? []),
  ...(projected?.sources ?? []).flatMap((source) => source.downwardAPI?.items ?? []),
];

export const showsPod = (volume: Volume): boolean => downwardItems(volume).length > 0;

/**
 * Whether a field of the Pod in one of its volumes differs between the two versions. Resources of containers (resourceFieldRef) are not
 * compared.
 */
export function showsChange(before: Pod, after: Pod, facts: DownwardFacts): boolean {
  const items = (after.spec?.volumes ?? []).flatMap(downwardItems);
  // Compare each field once, since thousands of items may refer to the same annotations.
  const fieldPaths = new Set(items.flatMap(({ fieldRef }) => fieldRef?.fieldPath ?? []));
  return [...fieldPaths].some((fieldPath) => {
    try {
      return fieldValue({ fieldPath }, before, facts) !== fieldValue({ fieldPath }, after, facts);
    } catch {
      // The field is not supported, so the volume could not be mounted.
      return false;
    }
  });
}

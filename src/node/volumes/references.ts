/** What the volumes of a Pod are made of, and whether they follow its changes. Pure. */
import type { DownwardAPIVolumeFile, Pod, Volume } from '../../api/generated/types.ts';
import { type DownwardFacts, fieldValue } from '../container/downward.ts';

/** The resources whose objects become files. */
export type FileSource = 'configmaps' | 'secrets';

export const fileSourceKey = (resource: FileSource, namespace: string | undefined, name: string | undefined): string =>
  `${resource}/${namespace ?? ''}/${name ?? ''}`;

/** Its files are written by the node, and written anew when what they show changes. */
export const showsObjects = (volume: Volume): boolean =>
  [volume.configMap, volume.secret, volume.downwardAPI, volume.projected].some((source) => source !== undefined);

/** Secrets and tokens do not touch the disk. */
export const isInMemory = ({ secret, projected }: Volume): boolean => secret !== undefined || projected !== undefined;

/** Keys of the ConfigMaps and Secrets that the Pod's volumes show. */
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

/** The files that show fields of the Pod itself. */
export const downwardItems = ({ downwardAPI, projected }: Volume): DownwardAPIVolumeFile[] => [
  ...(downwardAPI?.items ?? []),
  ...(projected?.sources ?? []).flatMap((source) => source.downwardAPI?.items ?? []),
];

export const showsPod = (volume: Volume): boolean => downwardItems(volume).length > 0;

/** Whether some volume shows other fields of the Pod than before. */
export function showsChange(before: Pod, after: Pod, facts: DownwardFacts): boolean {
  const items = (after.spec?.volumes ?? []).flatMap(downwardItems);
  // Thousands of items may show the same annotations.
  const fieldPaths = new Set(items.flatMap(({ fieldRef }) => fieldRef?.fieldPath ?? []));
  return [...fieldPaths].some((fieldPath) => {
    try {
      return fieldValue({ fieldPath }, before, facts) !== fieldValue({ fieldPath }, after, facts);
    } catch {
      // Not a field that can be shown: the volume is not mounted.
      return false;
    }
  });
}

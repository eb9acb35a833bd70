/** What the volumes of a Pod are made of, and whether they follow its changes. Pure. */
import type { Pod, Volume } from '../../api/generated/types.ts';

/** The resources whose objects become files. */
export type FileSource = 'configmaps' | 'secrets';

export const fileSourceKey = (resource: FileSource, namespace: string | undefined, name: string | undefined): string =>
  `${resource}/${namespace ?? ''}/${name ?? ''}`;

/** Its files are written by the node, and written anew when what they show changes. */
export const showsObjects = (volume: Volume): boolean =>
  [volume.configMap, volume.secret, volume.downwardAPI, volume.projected].some((source) => source !== undefined);

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

/** Whether some volume shows fields of the Pod itself. */
export const showsPod = ({ spec }: Pod): boolean =>
  (spec?.volumes ?? []).some(
    ({ downwardAPI, projected }) =>
      downwardAPI !== undefined || (projected?.sources ?? []).some((source) => source.downwardAPI !== undefined),
  );

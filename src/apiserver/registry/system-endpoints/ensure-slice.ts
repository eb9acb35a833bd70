import { isDeepStrictEqual } from 'node:util';
import type { EndpointSlice } from '../../../api/generated/types.ts';
import { ENDPOINT_SLICES } from '../../../api/resources.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { ResourceApi } from '../../../ports/backend.ts';
import { absent, ensure } from '../bootstrap.ts';

/**
 * Creates the slice, or corrects it if it differs from `wanted`. Additional labels stay. Leaves a slice that is being deleted unchanged:
 * the caller calls again when the deletion has ended.
 */
export async function ensureSlice(api: ResourceApi, wanted: EndpointSlice): Promise<void> {
  const { name, namespace } = wanted.metadata;
  const create = () => ensure(() => api.create(ENDPOINT_SLICES, namespace, wanted as KubeObject));
  const found = (await api.get(ENDPOINT_SLICES, namespace, name).catch(absent)) as EndpointSlice | undefined;
  if (found === undefined) return create();
  if (found.metadata.deletionTimestamp !== undefined) return;
  if (found.addressType !== wanted.addressType) {
    await api.delete(ENDPOINT_SLICES, namespace, name);
    return create();
  }
  const labels = { ...found.metadata.labels, ...wanted.metadata.labels };
  const { endpoints, ports } = wanted;
  const isRight = isDeepStrictEqual([found.endpoints, found.ports, found.metadata.labels], [endpoints, ports, labels]);
  if (isRight) return;
  await api.update(ENDPOINT_SLICES, {
    ...found,
    metadata: { ...found.metadata, labels },
    endpoints,
    ports,
  } as KubeObject);
}

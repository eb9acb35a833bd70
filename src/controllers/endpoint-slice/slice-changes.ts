/**
 * Defines the changes of EndpointSlices as data, and writes them.
 * Source: finalize of the package endpointslice of v1.33 (behavior).
 */
import type { EndpointSlice } from '../../api/generated/types.ts';
import { ENDPOINT_SLICES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { dns1123SubdomainErrors } from '../../machinery/names.ts';
import { isApiError, isNamespaceTerminating } from '../../machinery/status.ts';

export interface SliceChanges {
  create: EndpointSlice[];
  /** New versions of existing slices. They have the resourceVersions of the replaced versions. */
  update: EndpointSlice[];
  remove: EndpointSlice[];
}

export const generateNameFor = (name: string): string =>
  dns1123SubdomainErrors(`${name}-x`).length === 0 ? `${name}-` : name;

/** Replaces creates by updates of slices that would be removed, if they belong to the owner and have the same address type. */
export function recycle({ create, update, remove }: SliceChanges, owner: KubeObject): SliceChanges {
  const rest = [...remove];
  const created: EndpointSlice[] = [];
  const recycled: EndpointSlice[] = [];
  for (const slice of create) {
    const index = rest.findIndex((old) => old.addressType === slice.addressType && isOwnedBy(old, owner));
    const [old] = index === -1 ? [] : rest.splice(index, 1);
    if (old === undefined) created.push(slice);
    else recycled.push({ ...slice, metadata: { ...old.metadata, ...mutableMetadata(slice) } });
  }
  return { create: created, update: [...update, ...recycled], remove: rest };
}

const mutableMetadata = ({ metadata: { labels, annotations, ownerReferences } }: EndpointSlice) => ({
  labels,
  annotations,
  ownerReferences,
});

export const isOwnedBy = ({ metadata }: EndpointSlice, owner: KubeObject): boolean =>
  (metadata.ownerReferences ?? []).some(({ uid, kind }) => uid === owner.metadata.uid && kind === owner.kind);

/**
 * Creates, then updates, then removes slices, so that no endpoint is missing in between. Resolves once the informer's cache contains the
 * writes. Rejects with the first error. Ignores a slice that another client has changed: this change queues its Service again.
 */
export async function writeSlices(
  client: Client,
  slices: Informer<EndpointSlice>,
  { create, update, remove }: SliceChanges,
): Promise<void> {
  const resource = client.resource<EndpointSlice>(ENDPOINT_SLICES);
  const visible: Promise<void>[] = [];
  const written = ({ metadata }: KubeObject): unknown => visible.push(slices.reached(metadata.resourceVersion));
  const creates = create.map(async (slice) => {
    try {
      written(await resource.create(slice));
    } catch (error) {
      // The namespace is being deleted: every create would fail, and the Service is about to be deleted.
      if (!isNamespaceTerminating(error)) throw error;
    }
  });
  await Promise.all(creates);
  await Promise.all(update.map((slice) => resource.update(slice).then(written, ignoreChanged)));
  const removes = remove.map(async (slice) => {
    const { name, namespace } = slice.metadata;
    await resource.delete(name, namespace, { preconditions: { uid: uidOf(slice) } }).catch(ignoreChanged);
    visible.push(slices.gone(slice));
  });
  await Promise.all(removes);
  await Promise.all(visible);
}

function ignoreChanged(error: unknown): void {
  if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
}

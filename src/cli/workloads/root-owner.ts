import type { Client } from '../../client/client.ts';
import { type KubeObject, type OwnerReference, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { FindKind } from '../session/discovery.ts';
import { controllerOf } from '../why/subject.ts';

export interface RootOptions {
  client: Client;
  findKind: FindKind;
  /** Whether the object is one at which the search ends. */
  isRoot(object: KubeObject): boolean;
}

export interface Root {
  uid: string;
  kind: string;
  name: string;
}

type Reference = Pick<OwnerReference, 'apiVersion' | 'kind' | 'name' | 'uid'>;

/**
 * Returns a function that resolves with the first root among the object of the reference and the controllers above it; with undefined if
 * there is none, or if an object cannot be read now. Reads an object again only if the last read failed.
 */
export function createRootSearch({ client, findKind, isRoot }: RootOptions) {
  const known = new Map<string, Promise<Root | undefined>>();

  async function read({ apiVersion, kind, name, uid }: Reference, namespace: string | undefined) {
    const info = await findKind(apiVersion, kind);
    if (info === undefined) return undefined;
    const object = await client
      .resource(info)
      .get(name, info.namespaced ? namespace : undefined)
      .catch((error: unknown) => {
        if (isApiError(error, 'NotFound')) return undefined;
        throw error;
      });
    if (object === undefined || uidOf(object) !== uid) return undefined;
    if (isRoot(object)) return { uid, kind, name };
    const controller = controllerOf(object);
    return controller && rootOf(controller, namespace);
  }

  /** If an object cannot be read, rejects and forgets all objects below it, too. */
  function rootOf(reference: Reference, namespace: string | undefined): Promise<Root | undefined> {
    const before = known.get(reference.uid);
    if (before !== undefined) return before;
    const found = read(reference, namespace).catch((error: unknown) => {
      known.delete(reference.uid);
      throw error;
    });
    known.set(reference.uid, found);
    return found;
  }
  return (reference: Reference, namespace: string | undefined): Promise<Root | undefined> =>
    rootOf(reference, namespace).catch(() => undefined);
}

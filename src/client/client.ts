/**
 * The Kubernetes client of the scheduler, the controllers, the node and the command line. One implementation calls the API server's backend
 * in the same process, the other one uses HTTPS.
 */

import type { KubeList, KubeObject, ResourceRef, Status } from '../machinery/meta.ts';
import type { PatchType } from '../machinery/patch/patch.ts';
import type {
  DeleteOptions,
  ListOptions,
  ResourceApi,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from '../ports/backend.ts';

export interface ResourceClient<T extends KubeObject> {
  readonly ref: ResourceRef;
  get(name: string, namespace?: string): Promise<T>;
  list(options?: ListOptions): Promise<KubeList<T>>;
  watch(options: WatchOptions, sink: (event: WatchEvent<T>) => void, signal: AbortSignal): Promise<void>;
  create(object: T, options?: WriteOptions): Promise<T>;
  update(object: T, options?: WriteOptions): Promise<T>;
  updateStatus(object: T): Promise<T>;
  patch(name: string, namespace: string | undefined, type: PatchType, body: unknown, subresource?: string): Promise<T>;
  delete(name: string, namespace?: string, options?: DeleteOptions): Promise<T | Status>;
  createSubresource(name: string, namespace: string, subresource: string, body: KubeObject): Promise<KubeObject>;
}

export interface Client {
  readonly api: ResourceApi;
  resource<T extends KubeObject>(ref: ResourceRef): ResourceClient<T>;
}

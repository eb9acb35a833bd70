/** Counts the requests in progress, so that the backend is closed after the last one. A write that never ends would block others. */
import type { ResourceBackend } from '../../../src/ports/backend.ts';

export interface CountedBackend {
  backend: ResourceBackend;
  /** Resolves when no request except watches is under way. */
  idle(): Promise<void>;
}

export function countedBackend(inner: ResourceBackend): CountedBackend {
  const underWay = new Set<Promise<unknown>>();
  const counted = <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) => {
    return (...args: Args): Promise<Result> => {
      const result = call(...args);
      underWay.add(result);
      const ended = (): void => void underWay.delete(result);
      result.then(ended, ended);
      return result;
    };
  };
  const backend: ResourceBackend = {
    get: counted(inner.get),
    list: counted(inner.list),
    watch: inner.watch,
    create: counted(inner.create),
    update: counted(inner.update),
    patch: counted(inner.patch),
    delete: counted(inner.delete),
    deleteCollection: counted(inner.deleteCollection),
  };
  if (inner.onDrop !== undefined) backend.onDrop = inner.onDrop;
  return {
    backend,
    async idle() {
      while (underWay.size > 0) await Promise.allSettled([...underWay]);
    },
  };
}

/** Checks the objects in the valid files of a session when other files are not valid, so that the user sees all errors at once. */
import { dataDirOwner } from '../../platform/files.ts';
import { untilAborted } from '../../platform/on-abort.ts';
import { engineClient } from '../kubeconfig/engine-client.ts';
import { problemsOfSome } from './create-objects.ts';
import { createFindKind } from './discovery.ts';
import type { Manifest } from './manifests.ts';

/**
 * Resolves with a sentence for each object that the running engine refuses in a dry run; with none if no engine runs or the checks fail.
 */
export async function checkOthers(
  manifests: readonly Manifest[],
  { dataDir, namespace }: { dataDir: string; namespace: string },
  signal: AbortSignal,
): Promise<string[]> {
  if (manifests.length === 0 || dataDirOwner(dataDir) === undefined) return [];
  try {
    const client = await engineClient(dataDir, { signal });
    const planning = { client, findKind: createFindKind(client, signal), namespace, signal };
    return await untilAborted(signal, problemsOfSome(manifests, planning)).finally(client.close);
  } catch {
    return [];
  }
}

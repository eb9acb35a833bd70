import type { SandboxPod } from '../runtime.ts';
import { type Labels, podLabels } from './labels.ts';
import type { ObjectQueries } from './object-queries.ts';

/**
 * Resolves with the Pods of the listed sandboxes, by the ID of the sandbox. The API may not have these Pods any more. `scope`: the labels
 * of this lifepod instance.
 */
export async function sandboxPods(
  { listSandboxes }: Pick<ObjectQueries, 'listSandboxes'>,
  scope: Labels,
  signal: AbortSignal,
): Promise<Map<string, SandboxPod>> {
  const listed = await listSandboxes({}, signal);
  return new Map(
    listed.map(({ id, metadata: { name, namespace, uid, attempt }, labels }) => {
      const pod = { name, namespace, uid };
      const added = new Set(Object.keys({ ...podLabels(pod, attempt), ...scope }));
      const own = Object.entries(labels).filter(([key]) => !added.has(key));
      return [id, { ...pod, labels: Object.fromEntries(own) }];
    }),
  );
}

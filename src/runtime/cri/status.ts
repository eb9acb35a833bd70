/** What a runtime reports about itself. */
import type { RuntimeFeatures } from '../runtime.ts';
import type { Connection } from './connection.ts';
import type { RuntimeStatus } from './responses.ts';

const METHOD = 'runtime.v1.RuntimeService/Status';

/** `verbose`: includes `info`, whose format is the runtime's own. */
export const readStatus = (connection: Connection, verbose: boolean, signal: AbortSignal): Promise<RuntimeStatus> =>
  connection.unary<RuntimeStatus>(METHOD, { verbose }, signal);

export async function notReady(connection: Connection, signal: AbortSignal): Promise<string[]> {
  const { status } = await readStatus(connection, false, signal);
  return (status?.conditions ?? [])
    .filter((condition) => !condition.status)
    .map(({ type, reason, message }) => `${type} is false: ${reason}: ${message}`);
}

export const featuresOf = ({ features, runtimeHandlers }: RuntimeStatus): RuntimeFeatures | undefined =>
  features === null && runtimeHandlers.length === 0
    ? undefined
    : {
        supplementalGroupsPolicy: features?.supplementalGroupsPolicy ?? false,
        handlers: runtimeHandlers.map((handler) => ({
          name: handler.name,
          recursiveReadOnlyMounts: handler.features?.recursiveReadOnlyMounts ?? false,
        })),
      };

/**
 * The sandbox image, from the configuration that containerd before 2.0 includes in a verbose Status; undefined if the runtime
 * does not report it. containerd 2.x pins that image instead.
 */
export function sandboxImageOf({ info }: RuntimeStatus): string | undefined {
  try {
    return (JSON.parse(info['config'] ?? '{}') as { sandboxImage?: string } | null)?.sandboxImage || undefined;
  } catch {
    // The configuration of another runtime, in a format of its own.
    return undefined;
  }
}

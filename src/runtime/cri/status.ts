import type { RuntimeFeatures } from '../runtime.ts';
import type { Connection } from './connection.ts';
import type { RuntimeStatus } from './responses.ts';

const METHOD = 'runtime.v1.RuntimeService/Status';

/** `verbose`: whether the response includes `info`, whose format depends on the runtime. */
export const readStatus = (connection: Connection, verbose: boolean, signal: AbortSignal): Promise<RuntimeStatus> =>
  connection.unary<RuntimeStatus>(METHOD, { verbose }, signal);

/**
 * The conditions that upstream's kubelet requires, too. Others are ignored: containerd 2.x has a condition that is false while its
 * configuration uses deprecated features.
 */
const REQUIRED: ReadonlySet<string> = new Set(['RuntimeReady', 'NetworkReady']);

export async function notReady(connection: Connection, signal: AbortSignal): Promise<string[]> {
  const { status } = await readStatus(connection, false, signal);
  return (status?.conditions ?? [])
    .filter(({ type, status: isMet }) => REQUIRED.has(type) && !isMet)
    .map(({ type, reason, message }) => `${type} is false: ${reason}: ${message}`);
}

/** Returns undefined if the runtime does not report its features. */
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
 * Returns the sandbox image from the configuration that containerd before 2.0 includes in a verbose Status; undefined if the status does
 * not contain the image. containerd 2.x pins the sandbox image instead.
 */
export function sandboxImageOf({ info }: RuntimeStatus): string | undefined {
  try {
    return (JSON.parse(info['config'] ?? '{}') as { sandboxImage?: string } | null)?.sandboxImage || undefined;
  } catch {
    // info.config is the configuration of another runtime, in another format.
    return undefined;
  }
}

/** What a runtime that lifepod did not start was configured with: how it makes control groups, and what its sandboxes are of. */
import { connect } from './connection.ts';
import { readStatus, sandboxImageOf } from './status.ts';

interface ContainerdConfig {
  containerd?: {
    defaultRuntimeName?: string;
    runtimes?: Record<string, { options?: { SystemdCgroup?: boolean } | null }>;
  };
}

export interface RuntimeConfig {
  cgroupDriver: 'cgroupfs' | 'systemd' | undefined;
  /** The reference of an image. */
  sandboxImage: string | undefined;
}

/**
 * Of the runtime's default handler; undefined where the runtime does not tell. Source: what containerd says of its
 * configuration in a verbose Status; before 2.0 nothing else tells.
 */
export async function readRuntimeConfig(endpoint: string, signal: AbortSignal): Promise<RuntimeConfig> {
  const connection = connect(endpoint);
  try {
    const status = await readStatus(connection, true, signal);
    return { cgroupDriver: driverOf(status.info['config']), sandboxImage: sandboxImageOf(status) };
  } finally {
    connection.close();
  }
}

/** `config`: JSON, as containerd shows it. */
export function driverOf(config: string | undefined): 'cgroupfs' | 'systemd' | undefined {
  if (config === undefined) return undefined;
  let containerd: ContainerdConfig['containerd'];
  try {
    ({ containerd } = (JSON.parse(config) ?? {}) as ContainerdConfig);
  } catch {
    // Another runtime's configuration, in a form of its own.
    return undefined;
  }
  const handler = containerd?.runtimes?.[containerd.defaultRuntimeName ?? ''];
  if (handler === undefined) return undefined;
  return handler.options?.SystemdCgroup === true ? 'systemd' : 'cgroupfs';
}

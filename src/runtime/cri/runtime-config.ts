/** Reads the configuration of a runtime that lifepod did not start. */
import { type Connection, connect, hasCode } from './connection.ts';
import { readStatus, sandboxImageOf } from './status.ts';

interface ContainerdConfig {
  containerd?: {
    defaultRuntimeName?: string;
    runtimes?: Record<string, { options?: { SystemdCgroup?: boolean } | null }>;
  };
}

export interface RuntimeConfig {
  cgroupDriver: 'cgroupfs' | 'systemd' | undefined;
  sandboxImage: string | undefined;
}

/**
 * Resolves with the sandbox image and the cgroup driver of the runtime's default handler, each undefined if the runtime does not report it.
 * The values come from CRI's RuntimeConfig (KEP-4033; containerd 2.0 and later), and from the configuration that older versions of
 * containerd include in a verbose Status.
 */
export async function readRuntimeConfig(endpoint: string, signal: AbortSignal): Promise<RuntimeConfig> {
  const connection = connect(endpoint);
  try {
    const status = await readStatus(connection, true, signal);
    const cgroupDriver = (await readDriver(connection, signal)) ?? driverOf(status.info['config']);
    return { cgroupDriver, sandboxImage: sandboxImageOf(status) };
  } finally {
    connection.close();
  }
}

/** Resolves with undefined if the runtime lacks this call or does not report the driver. */
async function readDriver(connection: Connection, signal: AbortSignal): Promise<'cgroupfs' | 'systemd' | undefined> {
  try {
    const { linux } = await connection.unary<{ linux: { cgroupDriver: 'SYSTEMD' | 'CGROUPFS' } | null }>(
      'runtime.v1.RuntimeService/RuntimeConfig',
      {},
      signal,
    );
    if (linux === null) return undefined;
    return linux.cgroupDriver === 'SYSTEMD' ? 'systemd' : 'cgroupfs';
  } catch (error) {
    if (hasCode(error, 'Unimplemented')) return undefined;
    throw error;
  }
}

/** `config`: containerd's configuration in JSON. Returns undefined if it does not contain the driver of the default handler. */
export function driverOf(config: string | undefined): 'cgroupfs' | 'systemd' | undefined {
  if (config === undefined) return undefined;
  let containerd: ContainerdConfig['containerd'];
  try {
    ({ containerd } = (JSON.parse(config) ?? {}) as ContainerdConfig);
  } catch {
    // `config` is the configuration of another runtime, in another format.
    return undefined;
  }
  const handler = containerd?.runtimes?.[containerd.defaultRuntimeName ?? ''];
  if (handler === undefined) return undefined;
  return handler.options?.SystemdCgroup === true ? 'systemd' : 'cgroupfs';
}

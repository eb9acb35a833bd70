import type { ContainerUsage, RuntimeUsage } from '../runtime.ts';
import { type Connection, hasCode } from './connection.ts';
import { isOurs, type Labels, podUidOf } from './labels.ts';
import { millisOf } from './responses.ts';

const SERVICE = 'runtime.v1.RuntimeService';

/** null: omitted by the runtime. */
type Optional = { value: number } | null;

export interface ListedStats {
  attributes: { id: string; metadata: { name: string; attempt: number } | null; labels: Labels } | null;
  cpu: { timestamp: number; usageCoreNanoSeconds: Optional } | null;
  memory: {
    workingSetBytes: Optional;
    usageBytes: Optional;
    rssBytes: Optional;
    pageFaults: Optional;
    majorPageFaults: Optional;
  } | null;
  writableLayer: { usedBytes: Optional; inodesUsed: Optional } | null;
}

export function usageCalls(connection: Connection, scope: Labels): RuntimeUsage {
  return {
    async containerUsage(signal) {
      const request = { filter: { labelSelector: scope } };
      const { stats } = await connection.unary<{ stats: ListedStats[] }>(
        `${SERVICE}/ListContainerStats`,
        request,
        signal,
      );
      return stats.map(toUsage).filter((usage) => usage !== undefined);
    },
    async sandboxPid(id, signal) {
      const request = { podSandboxId: id, verbose: true };
      try {
        const { info } = await connection.unary<{ info: Record<string, string> }>(
          `${SERVICE}/PodSandboxStatus`,
          request,
          signal,
        );
        return pidOf(info);
      } catch (error) {
        if (hasCode(error, 'NotFound')) return undefined;
        throw error;
      }
    },
  };
}

/**
 * Returns undefined if lifepod did not create the container, or if the CPU usage or the working set is missing, for example because the
 * container ended during the measurement.
 */
export function toUsage({ attributes, cpu, memory, writableLayer }: ListedStats): ContainerUsage | undefined {
  const cpuNanoSeconds = cpu?.usageCoreNanoSeconds?.value;
  const workingSetBytes = memory?.workingSetBytes?.value;
  if (attributes === null || !isOurs(attributes.labels)) return undefined;
  if (cpu === null || cpuNanoSeconds === undefined || workingSetBytes === undefined) return undefined;
  const usedBytes = writableLayer?.usedBytes?.value;
  return {
    podUid: podUidOf(attributes.labels),
    id: attributes.id,
    name: attributes.metadata?.name ?? '',
    attempt: attributes.metadata?.attempt ?? 0,
    at: millisOf(cpu.timestamp) ?? 0,
    cpuNanoSeconds,
    workingSetBytes,
    ...optional('usageBytes', memory?.usageBytes),
    ...optional('rssBytes', memory?.rssBytes),
    ...optional('pageFaults', memory?.pageFaults),
    ...optional('majorPageFaults', memory?.majorPageFaults),
    ...(usedBytes === undefined ? {} : { rootFs: { usedBytes, inodesUsed: writableLayer?.inodesUsed?.value ?? 0 } }),
  };
}

const optional = <K extends string>(key: K, number: Optional | undefined): { [P in K]?: number } =>
  number === null || number === undefined ? {} : ({ [key]: number.value } as { [P in K]?: number });

/** containerd and CRI-O report the process ID as JSON under the key `info`. */
function pidOf({ info = '' }: Record<string, string>): number | undefined {
  try {
    const { pid } = JSON.parse(info) as { pid?: unknown };
    return typeof pid === 'number' && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

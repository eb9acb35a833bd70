/** Creates the engine's metrics: a set for the whole engine, and a set for the node, which the first set includes. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { KindCatalog } from '../api/catalog.ts';
import type { Registry } from '../apiserver/registry/registry.ts';
import { workQueueMetrics } from '../client/work-queue.ts';
import { createMetrics, family, type MetricFamily, type Metrics, single } from '../platform/metrics.ts';
import { addProcessMetrics } from '../platform/process-metrics.ts';
import { apiFor } from '../ports/api-for.ts';
import { API_SERVER } from '../ports/request.ts';
import { addBuildInfo } from './version.ts';

export interface EngineMetrics {
  /** The API server serves these at /metrics. */
  all: Metrics;
  /** `all` includes these. The node serves them at its own /metrics. */
  node: Metrics;
}

export function createEngineMetrics(signal: AbortSignal): EngineMetrics {
  const all = createMetrics();
  const node = createMetrics();
  addProcessMetrics(node, signal);
  addBuildInfo(node);
  all.source(() => node.families());
  all.source(workQueueMetrics);
  return { all, node };
}

export function addStorageMetrics(metrics: Metrics, registry: Registry, catalog: KindCatalog, dataDir: string): void {
  metrics.source(async () => [
    family(
      'gauge',
      'apiserver_storage_size_bytes',
      'Size of the database file in bytes.',
      single(storeBytes(join(dataDir, 'store'))),
    ),
    family('gauge', 'lifepod_store_revision', 'The revision of the newest write.', single(registry.revision())),
    await objectCounts(registry, catalog),
  ]);
}

/** Counts the objects of cached resources only, because the objects of other resources would have to be read from the disk. */
async function objectCounts(registry: Registry, { kinds }: KindCatalog): Promise<MetricFamily> {
  const api = apiFor(registry, API_SERVER);
  const counted = kinds.filter(
    (kind) => !kind.createOnly && !kind.uncached && kind.computed === undefined && kind.storage === undefined,
  );
  const samples = await Promise.all(
    counted.map(async ({ group, version, plural }) => ({
      labels: { group, resource: plural },
      value: (await api.list({ group, version, resource: plural }, {})).items.length,
    })),
  );
  return family('gauge', 'apiserver_resource_objects', 'Number of stored objects by resource.', samples);
}

function storeBytes(folder: string): number {
  return statSync(join(folder, 'data.mdb')).size;
}

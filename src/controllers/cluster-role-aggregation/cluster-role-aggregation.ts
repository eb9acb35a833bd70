/**
 * Copies to each ClusterRole with an aggregationRule the rules of the ClusterRoles that the aggregationRule selects.
 *
 * Reads: clusterroles. Writes: clusterroles (server-side apply of the rules).
 * Source: pkg/controller/clusterroleaggregation of v1.33 (behavior and field manager).
 */
import type { ClusterRole } from '../../api/generated/types.ts';
import { CLUSTER_ROLES } from '../../api/resources.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { ControllerOptions } from '../controller.ts';
import { aggregatedRules } from './aggregate.ts';

const FIELD_MANAGER = 'clusterrole-aggregation-controller';

const isAggregated = ({ aggregationRule }: ClusterRole): boolean => aggregationRule !== undefined;
/** The index key of all ClusterRoles with an aggregationRule. */
const AGGREGATED = 'aggregated';
const aggregatedKeys = (role: ClusterRole): readonly string[] => (isAggregated(role) ? [AGGREGATED] : []);

const byName = ({ metadata: a }: ClusterRole, { metadata: b }: ClusterRole): number => (a.name < b.name ? -1 : 1);

export async function startClusterRoleAggregation({ client, informers, ...options }: ControllerOptions): Promise<void> {
  const { signal } = options;
  const roles = informers.follow<ClusterRole>(
    CLUSTER_ROLES,
    { signal },
    { added: () => enqueue(), updated: () => enqueue(), deleted: () => enqueue() },
  );
  /** All roles sorted by name; undefined after a role has changed. */
  let sorted: ClusterRole[] | undefined;
  const process = async (name: string): Promise<void> => {
    const role = roles.get(undefined, name);
    if (role === undefined || !isAggregated(role)) return;
    sorted ??= roles.list().sort(byName);
    const rules = aggregatedRules(role, sorted);
    if (rules === undefined) return;
    const { apiVersion, kind } = role;
    const body = { apiVersion, kind, metadata: { name }, rules };
    const written = await client.api.patch(CLUSTER_ROLES, undefined, name, 'application/apply-patch+yaml', body, {
      fieldManager: FIELD_MANAGER,
      force: true,
    });
    await roles.reached(written.metadata.resourceVersion);
  };
  const queue = createWorkQueue({ name: 'clusterrole-aggregation', process, ...options });
  function enqueue(): void {
    sorted = undefined;
    for (const { metadata } of roles.by(aggregatedKeys, AGGREGATED)) queue.add(metadata.name);
  }
  await roles.synced;
}

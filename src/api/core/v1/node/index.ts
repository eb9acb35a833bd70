/** The Node: a machine that runs Pods. Source: pkg/registry/core/node and pkg/apis/core of v1.33. */
import type { Node } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { statusSubresource } from '../../../status-subresource.ts';
import { nodeColumns, nodeRow } from './table.ts';
import { validateNodeCreate, validateNodeUpdate } from './validation.ts';

/** Sets podCIDRs from podCIDR, or podCIDR from podCIDRs, so that podCIDR is the first of podCIDRs. */
function syncPodCidrs({ spec }: Node): void {
  if (spec === undefined) return;
  if (spec.podCIDR) {
    if (spec.podCIDRs?.[0] !== spec.podCIDR) spec.podCIDRs = [spec.podCIDR];
  } else if (spec.podCIDRs?.[0] !== undefined) {
    spec.podCIDR = spec.podCIDRs[0];
  }
}

export const nodeKind: KindDefinition<Node> = {
  group: '',
  version: 'v1',
  kind: 'Node',
  plural: 'nodes',
  singular: 'node',
  shortNames: ['no'],
  categories: [],
  namespaced: false,
  schema: 'Node',
  defaults(node) {
    node.spec ??= {};
    syncPodCidrs(node);
    // By default, the whole capacity is allocatable, because the API server knows of no reserved resources.
    if (node.status?.capacity !== undefined) node.status.allocatable ??= { ...node.status.capacity };
  },
  // There is no prepareForCreate() that drops the status, because a node registers together with its status.
  prepareForUpdate(node, old) {
    if (old.status === undefined) delete node.status;
    else node.status = old.status;
  },
  validateCreate: validateNodeCreate,
  validateUpdate: validateNodeUpdate,
  subresources: {
    status: statusSubresource(validateNodeUpdate),
    proxy: { verbs: ['get'], connects: 'NodeProxyOptions', subpaths: true },
  },
  selectableFields: (node) => ({ 'spec.unschedulable': String(node.spec?.unschedulable ?? false) }),
  columns: nodeColumns,
  row: nodeRow,
};

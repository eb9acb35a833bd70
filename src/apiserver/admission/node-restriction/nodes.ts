/**
 * Prevents a node from setting labels with which it could attract Pods that are meant for other nodes.
 * Source: admitNode of plugin/pkg/admission/noderestriction, and k8s.io/kubelet/pkg/apis of v1.33.4 (behavior and wording).
 */
import type { Node } from '../../../api/generated/types.ts';
import { jsonEqual } from '../../../machinery/json-value.ts';
import { quoted, type Restriction, refusal } from './restriction.ts';

export const restrictNode: Restriction = (nodeName, request) => {
  const node = `node ${quoted(nodeName)}`;
  if (request.name !== nodeName)
    throw refusal(request, `${node} is not allowed to modify node ${quoted(request.name)}`);
  if (request.operation === 'CREATE') {
    const created = request.object as Node;
    if (created.spec?.configSource !== undefined)
      throw refusal(request, `${node} is not allowed to create pods with a non-nil configSource`);
    const labels = forbiddenLabels(created.metadata.labels, {});
    if (labels.length > 0)
      throw refusal(request, `${node} is not allowed to set the following labels: ${labels.join(', ')}`);
  }
  if (request.operation !== 'UPDATE') return;
  const [after, before] = [request.object as Node, request.old as Node];
  const config = after.spec?.configSource;
  if (config !== undefined && !jsonEqual(config, before.spec?.configSource))
    throw refusal(request, `${node} is not allowed to update configSource to a new non-nil configSource`);
  if (!jsonEqual(after.spec?.taints ?? [], before.spec?.taints ?? []))
    throw refusal(request, `${node} is not allowed to modify taints`);
  const labels = forbiddenLabels(after.metadata.labels, before.metadata.labels);
  if (labels.length > 0) throw refusal(request, `is not allowed to modify labels: ${labels.join(', ')}`);
  // With a changed owner, a node could make the garbage collector delete its Node, and then register again without the taints.
  if (!jsonEqual(after.metadata.ownerReferences ?? [], before.metadata.ownerReferences ?? []))
    throw refusal(request, `${node} is not allowed to modify ownerReferences`);
};

type Labels = Readonly<Record<string, string>>;

/** Nodes may also set labels in kubelet.kubernetes.io and node.kubernetes.io. */
const NODE_LABELS: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
]);

function forbiddenLabels(after: Labels = {}, before: Labels = {}): string[] {
  const keys = new Set([...Object.keys(after), ...Object.keys(before)]);
  return [...keys].filter((key) => after[key] !== before[key] && isForbidden(key)).sort();
}

function isForbidden(key: string): boolean {
  const prefix = key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
  const isIn = (domain: string): boolean => prefix === domain || prefix.endsWith(`.${domain}`);
  if (isIn('node-restriction.kubernetes.io')) return true;
  if (!isIn('kubernetes.io') && !isIn('k8s.io')) return false;
  return !NODE_LABELS.has(key) && !isIn('kubelet.kubernetes.io') && !isIn('node.kubernetes.io');
}

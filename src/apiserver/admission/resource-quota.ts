/**
 * Charges the namespace's ResourceQuotas for writes, and rejects a write that would exceed a quota. Deletes are not charged: the controller
 * counts the remaining objects.
 *
 * Invariants:
 *  1. A quota is charged in the transaction that writes the object, so that no crash can separate the two.
 *  2. If a quota of the namespace has changed since the plugin allowed a write, the write fails and the plugin decides again. Therefore,
 *     two writes never exceed a quota together.
 *
 * Source: the plugin ResourceQuota of v1.33 (behavior and wording), except that upstream charges the quotas before the write.
 */
import { charge } from '../../api/core/v1/resource-quota/usage/charge.ts';
import { evaluatorOf, isCountable } from '../../api/core/v1/resource-quota/usage/evaluators.ts';
import type { ResourceQuota } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { forbidden } from '../../machinery/status.ts';
import { objectKey, resourcePrefix } from '../cache/keys.ts';
import { revisionOf } from '../cache/stored-object.ts';
import type { AdmissionTarget, PluginFactory } from './plugin.ts';

const PREFIX = resourcePrefix('', 'resourcequotas');

const isCharged = ({ kind, subresource, operation }: AdmissionTarget): boolean => {
  if (!isCountable(kind)) return false;
  if (operation === 'CREATE') return subresource === '';
  if (operation !== 'UPDATE') return false;
  return (
    subresource === 'resize' || (subresource === '' && evaluatorOf(kind.group, kind.plural).chargesUpdates === true)
  );
};

export const resourceQuota: PluginFactory = ({ cache, timers }) => ({
  name: 'ResourceQuota',
  handles: isCharged,
  alongside({ kind, groupResource, namespace, object, old }) {
    const quotas = cache.list(PREFIX, namespace) as ResourceQuota[];
    if (quotas.length === 0) return [];
    const evaluator = evaluatorOf(kind.group, kind.plural);
    const written = object as KubeObject;
    const result = charge(quotas, { evaluator, object: written, old, now: timers.now() });
    if ('refused' in result) throw forbidden(groupResource, written.metadata.name, result.refused);
    const changed = new Map(result.charged.map((quota) => [quota.metadata.name, quota]));
    return quotas.map((quota) => {
      const { name } = quota.metadata;
      const at = { key: objectKey(PREFIX, namespace, name), modRevision: revisionOf(quota) };
      const next = changed.get(name);
      return next === undefined ? at : { ...at, object: next };
    });
  },
});

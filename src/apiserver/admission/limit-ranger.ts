/**
 * Applies the namespace's LimitRanges to Pods and claims. An update of a Pod is checked only in the subresource `resize`, because no other
 * update can change the resources of containers. Mirror Pods are not exempt.
 * Source: the plugin LimitRanger of v1.33 (behavior and wording).
 */
import { claimViolation, podViolation } from '../../api/core/v1/limit-range/constraints.ts';
import { setContainerDefaults } from '../../api/core/v1/limit-range/container-defaults.ts';
import type { LimitRange, PersistentVolumeClaim, Pod } from '../../api/generated/types.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '../../api/resources.ts';
import { forbidden } from '../../machinery/status.ts';
import { resourcePrefix } from '../cache/keys.ts';
import type { AdmissionRequest, AdmissionTarget, PluginFactory } from './plugin.ts';
import { isKindOf, on } from './targets.ts';

const PREFIX = resourcePrefix('', 'limitranges');

const isClaim = on(PERSISTENT_VOLUME_CLAIMS, 'CREATE', 'UPDATE');
const isNewPod = on(PODS, 'CREATE');
const isResize = ({ kind, subresource, operation }: AdmissionTarget): boolean =>
  subresource === 'resize' && operation === 'UPDATE' && isKindOf(kind, PODS);

export const limitRanger: PluginFactory = ({ cache }) => {
  const rangesFor = ({ namespace, old }: AdmissionRequest): LimitRange[] =>
    old?.metadata.deletionTimestamp === undefined ? (cache.list(PREFIX, namespace) as LimitRange[]) : [];
  return {
    name: 'LimitRanger',
    handles: (target) => isNewPod(target) || isResize(target) || isClaim(target),
    admit(request) {
      if (isClaim(request)) return;
      for (const range of rangesFor(request)) setContainerDefaults(request.object as Pod, range);
    },
    validate(request) {
      for (const range of rangesFor(request)) {
        const cause = isClaim(request)
          ? claimViolation(request.object as PersistentVolumeClaim, range)
          : podViolation(request.object as Pod, range);
        if (cause !== undefined) throw refusal(request, cause);
      }
    },
  };
};

function refusal({ groupResource, object }: AdmissionRequest, cause: string) {
  const { name, generateName } = object?.metadata ?? {};
  return forbidden(groupResource, name || generateName || '', cause);
}

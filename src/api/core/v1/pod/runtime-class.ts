/** Admission of a new Pod by its RuntimeClass. Source: plugin/pkg/admission/runtimeclass of v1.33 (behavior and wording). */
import { jsonEqual } from '../../../../machinery/json-value.ts';
import type { Pod, RuntimeClass, Toleration } from '../../../generated/types.ts';
import { forbiddenPod } from './forbidden-pod.ts';
import { resourceQuantities, resourceTexts } from './resources.ts';

/**
 * Adds the overhead, node selector and tolerations of the class to the Pod. `runtimeClass`: the class that the Pod names; undefined if the
 * Pod names none or the class does not exist. Throws 403 if the named class does not exist, if the Pod's overhead or node selector
 * conflicts with the class, or if the Pod sets an overhead but no class defines one.
 */
export function admitRuntimeClass(pod: Pod, runtimeClass: RuntimeClass | undefined): void {
  const { spec } = pod;
  if (spec === undefined) return;
  const refuse = (cause: string) => forbiddenPod(pod, cause);
  const name = spec.runtimeClassName;
  if (name !== undefined && runtimeClass === undefined)
    throw refuse(`pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
  const overhead = runtimeClass?.overhead?.podFixed;
  if (overhead === undefined) {
    if (Object.keys(spec.overhead ?? {}).length > 0)
      throw refuse('pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead');
  } else {
    if (spec.overhead !== undefined && !sameAmounts(spec.overhead, overhead))
      throw refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
    spec.overhead = { ...overhead };
  }
  const { nodeSelector = {}, tolerations = [] } = runtimeClass?.scheduling ?? {};
  if (Object.keys(nodeSelector).length > 0) spec.nodeSelector = { ...spec.nodeSelector };
  for (const [key, value] of Object.entries(nodeSelector)) {
    const own = Object.hasOwn(spec.nodeSelector ?? {}, key) ? spec.nodeSelector?.[key] : undefined;
    if (own !== undefined && own !== value) {
      throw refuse(
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own}`,
      );
    }
    if (spec.nodeSelector !== undefined) spec.nodeSelector[key] = value;
  }
  if (tolerations.length === 0) return;
  const given = new Set(spec.tolerations?.map(tolerationText));
  const missing = tolerations.filter((toleration) => !given.has(tolerationText(toleration)));
  if (missing.length > 0) spec.tolerations = [...(spec.tolerations ?? []), ...missing];
}

const tolerationText = ({ key, operator, value, effect, tolerationSeconds }: Toleration): string =>
  JSON.stringify([key, operator, value, effect, tolerationSeconds]);

const sameAmounts = (a: Record<string, string>, b: Record<string, string>): boolean =>
  jsonEqual(resourceTexts(resourceQuantities(a)), resourceTexts(resourceQuantities(b)));

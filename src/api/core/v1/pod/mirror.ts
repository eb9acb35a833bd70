/**
 * Mirror Pods: Pods in the API that show the static Pods, which a node runs from files.
 * Source: pkg/apis/core/validation, the admission plugins ServiceAccount and NodeRestriction of v1.33 (rules, wording);
 * podutil.HasAPIObjectReference of v1.34 (the references that a static Pod may not have).
 */
import { type FieldError, forbidden, invalid } from '../../../../machinery/field-error.ts';
import type { Pod } from '../../../generated/types.ts';
import { forbiddenPod } from './forbidden-pod.ts';
import { referencesOf } from './references.ts';

/** The annotation that marks a mirror Pod. Its value is the UID of the static Pod. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
const PATH = `metadata.annotations[${MIRROR_ANNOTATION}]`;

/** The UID of the static Pod that the Pod mirrors; undefined if the Pod is not a mirror Pod. */
export const mirroredUid = (pod: Pod): string | undefined => pod.metadata.annotations?.[MIRROR_ANNOTATION];

/** The annotation with the source from which a node read a Pod; `file` for a manifest. */
export const SOURCE_ANNOTATION = 'kubernetes.io/config.source';

/** Whether the node agent read the Pod from a manifest. An API object with this annotation may be a mirror, or pretend to be one. */
export const isStaticPod = (pod: Pod): boolean => pod.metadata.annotations?.[SOURCE_ANNOTATION] === 'file';

export const isMirrorPod = (pod: Pod): boolean => mirroredUid(pod) !== undefined;

export function validateMirrorCreate(pod: Pod): FieldError[] {
  const value = mirroredUid(pod);
  return value === undefined || pod.spec?.nodeName
    ? []
    : [invalid(PATH, value, 'must set spec.nodeName if mirror pod annotation is set')];
}

export function validateMirrorUpdate(pod: Pod, old: Pod): FieldError[] {
  if (mirroredUid(pod) === mirroredUid(old)) return [];
  const verbs = isMirrorPod(old) ? 'remove or update' : 'add';
  return [forbidden(PATH, `may not ${verbs} mirror pod annotation`)];
}

/**
 * Throws 403 if the mirror Pod refers to other objects of the API, or if its creator is not a node (`byNode` is false). The second rule is
 * lifepod's: upstream allows any client to create mirror Pods, which the node then deletes.
 */
export function admitMirrorPod(pod: Pod, byNode: boolean): void {
  const refuse = (cause: string) => forbiddenPod(pod, cause);
  if (!byNode)
    throw refuse(`pod has ${JSON.stringify(MIRROR_ANNOTATION)} annotation, only nodes can create mirror pods`);
  const nodeName = JSON.stringify(pod.spec?.nodeName ?? '');
  const [reference] = apiReferences(pod);
  if (reference === 'serviceaccounts') throw refuse('a mirror pod may not reference service accounts');
  if (reference !== undefined) throw refuse(`node ${nodeName} can not create pods that reference ${reference}`);
}

/** Returns plural names such as serviceaccounts and secrets, with duplicates. */
export const apiReferences = (pod: Pod): string[] => [...referencesOf(pod)].map(({ resource }) => resource);

/**
 * Mirror Pods: Pods in the API that show the static Pods, which a node runs from files. An annotation identifies the static Pod.
 * Source: pkg/apis/core/validation, the admission plugins ServiceAccount and NodeRestriction of v1.33 (rules, wording);
 * podutil.HasAPIObjectReference of v1.34 (the references that a static Pod may not have).
 */
import { type FieldError, forbidden, invalid } from '../../../../machinery/field-error.ts';
import type { Pod, Volume } from '../../../generated/types.ts';
import { containersOf } from './containers.ts';
import { forbiddenPod } from './forbidden-pod.ts';

/** The annotation that marks a mirror Pod. Its value is the UID of the static Pod. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
const PATH = `metadata.annotations[${MIRROR_ANNOTATION}]`;

/** The UID of the static Pod that the Pod mirrors; undefined if the Pod is not a mirror Pod. */
export const mirroredUid = (pod: Pod): string | undefined => pod.metadata.annotations?.[MIRROR_ANNOTATION];

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
 * Throws 403 if the mirror Pod refers to other objects of the API, or if its creator is not a node (`byNode` is false). The second rule
 * is lifepod's: upstream allows any client to create mirror Pods, which the node then deletes.
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

/** The plural names of the resources whose objects the Pod refers to, such as serviceaccounts and secrets. May have duplicates. */
export function apiReferences(pod: Pod): string[] {
  const spec = pod.spec;
  const found: string[] = [];
  if (spec?.serviceAccountName) found.push('serviceaccounts');
  if ((spec?.imagePullSecrets ?? []).length > 0) found.push('secrets');
  if ((spec?.resourceClaims ?? []).length > 0) found.push('resourceclaims');
  for (const container of containersOf(pod)) {
    for (const { configMapRef, secretRef } of container.envFrom ?? []) {
      if (configMapRef) found.push('configmaps');
      if (secretRef) found.push('secrets');
    }
    for (const { valueFrom } of container.env ?? []) {
      if (valueFrom?.configMapKeyRef) found.push('configmaps');
      if (valueFrom?.secretKeyRef) found.push('secrets');
    }
  }
  return [...found, ...(spec?.volumes ?? []).flatMap(volumeReferences)];
}

function volumeReferences(volume: Volume): string[] {
  const found: string[] = [];
  if (volume.configMap) found.push('configmaps');
  if (volume.secret) found.push('secrets');
  if (volume.persistentVolumeClaim || volume.ephemeral) found.push('persistentvolumeclaims');
  for (const source of volume.projected?.sources ?? []) {
    if (source.serviceAccountToken) found.push('serviceaccounts');
    if (source.configMap) found.push('configmaps');
    if (source.secret) found.push('secrets');
    if (source.clusterTrustBundle) found.push('clustertrustbundles');
  }
  return found;
}

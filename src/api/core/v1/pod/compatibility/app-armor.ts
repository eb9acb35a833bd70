/**
 * AppArmor profiles: the field, and the annotations that were used for containers before v1.30. An annotation is read when a Pod is created
 * or gets ephemeral containers, if the field of the container is absent. After that, only the field counts, and the annotation is kept
 * unchanged.
 * Source: applyAppArmorVersionSkew of pkg/registry/core/pod, and pkg/apis/core/validation, of v1.33 (rules and wording).
 */
import {
  allErrors,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
  tooLong,
} from '../../../../../machinery/field-error.ts';
import type { AppArmorProfile, Pod } from '../../../../generated/types.ts';
import { sameValue } from '../compare.ts';
import { containersOf, containersWithPath, specOf } from '../containers.ts';
import { annotationPath } from './annotation-json.ts';

const KEY_PREFIX = 'container.apparmor.security.beta.kubernetes.io/';
const LOCALHOST_PREFIX = 'localhost/';
const RUNTIME_DEFAULT = 'runtime/default';
const UNCONFINED = 'unconfined';
const PROFILE_TYPES = ['Localhost', 'RuntimeDefault', 'Unconfined'];
const MAX_LOCALHOST_PROFILE_BYTES = 4095;

const isWindows = ({ spec }: Pod): boolean => spec?.os?.name === 'windows';

/** Returns undefined if the annotation's value is unknown. */
function profileOf(annotation: string): AppArmorProfile | undefined {
  if (annotation === UNCONFINED) return { type: 'Unconfined' };
  if (annotation === RUNTIME_DEFAULT) return { type: 'RuntimeDefault' };
  const localhostProfile = annotation.startsWith(LOCALHOST_PREFIX) ? annotation.slice(LOCALHOST_PREFIX.length) : '';
  return localhostProfile === '' ? undefined : { type: 'Localhost', localhostProfile };
}

/**
 * Sets the absent appArmorProfile of each container from a valid annotation. Calls `warn` for each annotation, valid or not, of a container
 * without the field. Ignores annotations that only repeat the Pod's profile, and Windows Pods.
 */
export function readAppArmorAnnotations(pod: Pod, warn: (sentence: string) => void = () => undefined): void {
  if (isWindows(pod)) return;
  const shared = pod.spec?.securityContext?.appArmorProfile;
  for (const container of containersOf(pod)) {
    const key = `${KEY_PREFIX}${container.name}`;
    const annotation = pod.metadata.annotations?.[key];
    if (annotation === undefined || container.securityContext?.appArmorProfile !== undefined) continue;
    const read = profileOf(annotation);
    const profile = read !== undefined && validateAppArmor(read, '').length === 0 ? read : undefined;
    if (profile !== undefined && shared !== undefined && sameValue(profile, shared)) continue;
    warn(`${annotationPath(key)}: deprecated since v1.30; use the "appArmorProfile" field instead`);
    if (profile !== undefined) container.securityContext = { ...container.securityContext, appArmorProfile: profile };
  }
}

export function validateAppArmor(profile: AppArmorProfile | undefined, path: string): FieldError[] {
  if (!profile) return [];
  const { type, localhostProfile } = profile;
  const at = `${path}.localhostProfile`;
  if (!type) return [required(`${path}.type`, 'type is required when appArmorProfile is set')];
  if (!PROFILE_TYPES.includes(type)) return [notSupported(`${path}.type`, type, PROFILE_TYPES)];
  if (type !== 'Localhost') {
    return localhostProfile === undefined
      ? []
      : [invalid(at, localhostProfile, 'can only be set when AppArmor type is Localhost')];
  }
  if (!localhostProfile) return [required(at, 'must be set when AppArmor type is Localhost')];
  const errors: FieldError[] = [];
  if (localhostProfile.trim() !== localhostProfile)
    errors.push(invalid(at, localhostProfile, 'must not be padded with whitespace'));
  if (Buffer.byteLength(localhostProfile) > MAX_LOCALHOST_PROFILE_BYTES)
    errors.push(tooLong(at, MAX_LOCALHOST_PROFILE_BYTES));
  return errors;
}

export function validateAppArmorAnnotations(pod: Pod): FieldError[] {
  const annotations = annotationsOf(pod);
  if (annotations.length === 0) return [];
  const names = new Set(containersOf(pod).map(({ name }) => name));
  return annotations.flatMap(([key, value]) => {
    const name = key.slice(KEY_PREFIX.length);
    const known = ['', RUNTIME_DEFAULT, UNCONFINED].includes(value) || value.startsWith(LOCALHOST_PREFIX);
    return allErrors(
      names.has(name) ? [] : [invalid(annotationPath(key), name, 'container not found')],
      known ? [] : [invalid(annotationPath(key), value, `invalid AppArmor profile name: ${JSON.stringify(value)}`)],
    );
  });
}

/**
 * Each annotation of a new Pod or of a template must match the profile in the field of its container or, by default, of the Pod. Containers
 * without a profile, and Windows Pods, are not checked.
 */
export function validateAppArmorMatch(pod: Pod): FieldError[] {
  if (isWindows(pod) || annotationsOf(pod).length === 0) return [];
  const shared = pod.spec?.securityContext?.appArmorProfile;
  return containersWithPath(specOf(pod)).flatMap(({ container, path }) => {
    const profile = container.securityContext?.appArmorProfile ?? shared;
    const annotation = pod.metadata.annotations?.[`${KEY_PREFIX}${container.name}`];
    if (profile === undefined || annotation === undefined) return [];
    const at = `${path}.securityContext.appArmorProfile`;
    const annotated = annotation.startsWith(LOCALHOST_PREFIX) ? 'Localhost' : profileOf(annotation)?.type;
    if (PROFILE_TYPES.includes(profile.type) && annotated !== profile.type)
      return [forbidden(`${at}.type`, 'apparmor type in annotation and field must match')];
    return profile.type === 'Localhost' && profile.localhostProfile !== annotation.slice(LOCALHOST_PREFIX.length)
      ? [forbidden(`${at}.localhostProfile`, 'apparmor profile in annotation and field must match')]
      : [];
  });
}

/** An update must not change the annotations, which describe how the Pod was created. */
export function validateAppArmorUpdate(pod: Pod, old: Pod): FieldError[] {
  const before = new Map(annotationsOf(old));
  const now = new Map(annotationsOf(pod));
  return allErrors(
    [...before]
      .filter(([key, value]) => now.get(key) !== value)
      .map(([key]) => forbidden(annotationPath(key), 'may not remove or update AppArmor annotations')),
    [...now.keys()]
      .filter((key) => !before.has(key))
      .map((key) => forbidden(annotationPath(key), 'may not add AppArmor annotations')),
  );
}

const annotationsOf = ({ metadata }: Pod): [key: string, value: string][] =>
  Object.entries(metadata.annotations ?? {}).filter(([key]) => key.startsWith(KEY_PREFIX));

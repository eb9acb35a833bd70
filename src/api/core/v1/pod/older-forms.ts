/**
 * Init containers as Kubernetes 1.3 to 1.7 knew them: a JSON array in an annotation, of the alpha or of the beta API.
 *
 * The form is read on create where spec.initContainers is absent; from then on the field is what counts, and the
 * annotation stays as it was written. The statuses are mirrored into the annotation of the same form.
 * Source: the proposal of init containers (2016), their pages for 1.5 and 1.6; Convert_v1_Pod_To_api_Pod of v1.5.
 */
import { type FieldError, forbidden, invalid } from '../../../../machinery/field-error.ts';
import type { Container, Pod } from '../../../generated/types.ts';
import { decode, type Shape, schemaTypes } from '../../../schema.ts';

const FORMS = ['pod.beta.kubernetes.io', 'pod.alpha.kubernetes.io'] as const;
const containersKey = (form: string): string => `${form}/init-containers`;
const statusesKey = (form: string): string => `${form}/init-container-statuses`;

export interface OlderForm {
  /** metadata.annotations[pod.beta.kubernetes.io/init-containers] */
  path: string;
  text: string;
  containers: Container[];
  /** What the JSON has that a container does not. */
  unknownFields: string[];
  /** Why the JSON cannot be read. */
  failure?: string;
}

/** The forms that the Pod has, the newer one first. */
export function olderForms(pod: Pod): OlderForm[] {
  return FORMS.flatMap((form) => {
    const text = pod.metadata.annotations?.[containersKey(form)];
    return text === undefined ? [] : [{ path: annotationPath(containersKey(form)), text, ...readContainers(text) }];
  });
}

const annotationPath = (key: string): string => `metadata.annotations[${key}]`;

/** encoding/json, which read these annotations, takes names in any case, ignores unknown ones, and reads null as nothing. */
function readContainers(text: string): Pick<OlderForm, 'containers' | 'unknownFields' | 'failure'> {
  const failed = (failure: string) => ({ containers: [], unknownFields: [], failure });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return failed((error as Error).message);
  }
  const spec = { initContainers: withFieldNames(value ?? [], { array: { ref: 'Container' } }) };
  const decoded = decode('PodSpec', spec);
  if (decoded.typeErrors[0] !== undefined) return failed(decoded.typeErrors[0]);
  return {
    containers: decoded.value['initContainers'] as unknown as Container[],
    unknownFields: decoded.unknownFields.map((path) => path.slice('initContainers'.length)),
  };
}

/** The value with the names of its fields as the schema writes them. */
function withFieldNames(value: unknown, shape: Shape): unknown {
  if (typeof shape !== 'object' || typeof value !== 'object' || value === null) return value;
  if ('array' in shape) return Array.isArray(value) ? value.map((item) => withFieldNames(item, shape.array)) : value;
  if (Array.isArray(value)) return value;
  const entries = Object.entries(value);
  if ('map' in shape) return Object.fromEntries(entries.map(([key, item]) => [key, withFieldNames(item, shape.map)]));
  const fields = schemaTypes[shape.ref] ?? {};
  return Object.fromEntries(
    entries.map(([key, item]) => {
      const name = key in fields ? key : Object.keys(fields).find((each) => each.toLowerCase() === key.toLowerCase());
      const field = name === undefined ? undefined : fields[name];
      return field === undefined ? [key, item] : [name, withFieldNames(item, field.shape)];
    }),
  );
}

/** On create, before the defaults: fills in the absent field. */
export function readOlderForms(pod: Pod): void {
  if (pod.spec === undefined || (pod.spec.initContainers ?? []).length > 0) return;
  const [form] = olderForms(pod);
  if (form !== undefined && form.containers.length > 0) pod.spec.initContainers = form.containers;
}

export const olderFormWarnings = (pod: Pod): string[] =>
  olderForms(pod).flatMap(({ path, unknownFields }) => [
    `${path}: deprecated since v1.6; use "spec.initContainers" instead`,
    ...unknownFields.map((field) => `${path}: unknown field ${JSON.stringify(field)}`),
  ]);

/** What clients wrote as statuses does not count, as with the status itself: the old object's stay, or none. */
export function keepOlderStatuses(pod: Pod, old: Pod | undefined): void {
  for (const key of FORMS.map(statusesKey)) setAnnotation(pod, key, old?.metadata.annotations?.[key]);
}

/** The statuses of the init containers, for whoever reads them in the form that the Pod was written in. */
export function mirrorOlderStatuses(pod: Pod): void {
  const statuses = pod.status?.initContainerStatuses ?? [];
  for (const form of FORMS) {
    const used = pod.metadata.annotations?.[containersKey(form)] !== undefined && statuses.length > 0;
    setAnnotation(pod, statusesKey(form), used ? JSON.stringify(statuses) : undefined);
  }
}

function setAnnotation(pod: Pod, key: string, value: string | undefined): void {
  if (pod.metadata.annotations?.[key] === value) return;
  const { [key]: _, ...others } = pod.metadata.annotations ?? {};
  const annotations = value === undefined ? others : { ...others, [key]: value };
  if (Object.keys(annotations).length > 0) pod.metadata.annotations = annotations;
  else delete pod.metadata.annotations;
}

/** The annotations say what the Pod was created with: nobody changes, adds or removes them later. */
export function validateOlderFormsUpdate(pod: Pod, old: Pod): FieldError[] {
  return FORMS.map(containersKey).flatMap((key) => {
    const before = old.metadata.annotations?.[key];
    const now = pod.metadata.annotations?.[key];
    if (now === before) return [];
    const verbs = before === undefined ? 'add' : 'remove or update';
    return [forbidden(annotationPath(key), `may not ${verbs} init container annotations`)];
  });
}

/** `same`: whether these containers, once they have their defaults, are those of the spec. */
export function validateOlderForms(pod: Pod, same: (containers: Container[]) => boolean): FieldError[] {
  return olderForms(pod).flatMap(({ path, text, containers, failure }) => {
    if (failure !== undefined) return [invalid(path, text, failure)];
    return same(containers) ? [] : [invalid(path, text, 'must be equal to spec.initContainers where both are given')];
  });
}

/**
 * Reads lists of containers that a client gives as a JSON array in an annotation: init containers in the alpha and beta form of Kubernetes
 * 1.3 to 1.7, and defer containers from clients whose types lack the field.
 *
 * The annotation is read on create if the field is absent or empty. After that, only the field counts, and the annotation is kept
 * unchanged. The statuses of the containers are mirrored into another annotation with the same prefix.
 * Source: the proposal of init containers (2016), the documentation of init containers for 1.5 and 1.6; Convert_v1_Pod_To_api_Pod of v1.5;
 * the specification of defer containers.
 */
import { type FieldError, forbidden } from '../../../../../machinery/field-error.ts';
import type { Container, DeferContainer, Pod } from '../../../../generated/types.ts';
import { annotationPath, differing, type FormFault, readAnnotationJson } from './annotation-json.ts';

interface ContainerList {
  field: 'initContainers' | 'deferContainers';
  statusField: 'initContainerStatuses' | 'deferContainerStatuses';
  word: 'init' | 'defer';
  /** The prefixes of the annotation keys, the newer one first. */
  forms: readonly string[];
  /** Absent if the annotations are not deprecated. */
  deprecation?: string;
}

const LISTS: readonly ContainerList[] = [
  {
    field: 'initContainers',
    statusField: 'initContainerStatuses',
    word: 'init',
    forms: ['pod.beta.kubernetes.io', 'pod.alpha.kubernetes.io'],
    deprecation: 'deprecated since v1.6; use "spec.initContainers" instead',
  },
  {
    field: 'deferContainers',
    statusField: 'deferContainerStatuses',
    word: 'defer',
    forms: ['pod.alpha.kubernetes.io'],
  },
];

interface Keys {
  containers: string;
  statuses: string;
}

/** The annotation keys of each form, such as pod.beta.kubernetes.io/init-containers and …/init-container-statuses. */
const KEYS: ReadonlyMap<ContainerList, readonly Keys[]> = new Map(
  LISTS.map((list) => [
    list,
    list.forms.map((form) => ({
      containers: `${form}/${list.word}-containers`,
      statuses: `${form}/${list.word}-container-statuses`,
    })),
  ]),
);
const keysOf = (list: ContainerList): readonly Keys[] => KEYS.get(list) ?? [];

export interface OlderForm {
  field: ContainerList['field'];
  /** The path of the annotation, such as metadata.annotations[pod.beta.kubernetes.io/init-containers]. */
  path: string;
  text: string;
  containers: (Container | DeferContainer)[];
  /** The paths of fields in the JSON that the type of the containers does not have. */
  unknownFields: string[];
  /** Absent if the annotation was decoded. */
  failure?: string;
}

function formsOf(pod: Pod, list: ContainerList): OlderForm[] {
  if (pod.metadata.annotations === undefined) return [];
  return keysOf(list).flatMap(({ containers: key }) => {
    const text = pod.metadata.annotations?.[key];
    return text === undefined
      ? []
      : [{ field: list.field, path: annotationPath(key), text, ...readContainers(text, list) }];
  });
}

function readContainers(
  text: string,
  { field }: ContainerList,
): Pick<OlderForm, 'containers' | 'unknownFields' | 'failure'> {
  const { value, unknownFields, ...rest } = readAnnotationJson(text, 'io.k8s.api.core.v1.PodSpec', field);
  return {
    containers: (value[field] ?? []) as unknown as Container[],
    unknownFields: unknownFields.map((path) => path.slice(field.length)),
    ...rest,
  };
}

/**
 * Sets each absent or empty list of containers from its annotation of the newest form. Must be called before the defaults. If an update
 * does not change the annotations, the init containers of `old` are kept instead: their images may have changed since the Pod was created.
 * On an update, keepDeferFields() restores omitted defer containers.
 */
export function readOlderForms(pod: Pod, old?: Pod): void {
  const { spec } = pod;
  if (spec === undefined) return;
  for (const list of LISTS) {
    const { field } = list;
    if ((spec[field] ?? []).length > 0 || (old !== undefined && field === 'deferContainers')) continue;
    const [form] = formsOf(pod, list);
    if (form === undefined || form.containers.length === 0) continue;
    const kept = keysOf(list).every(
      ({ containers: key }) => pod.metadata.annotations?.[key] === old?.metadata.annotations?.[key],
    );
    spec[field] = (kept && structuredClone(old?.spec?.[field])) || form.containers;
  }
}

export const olderFormWarnings = (pod: Pod): string[] =>
  LISTS.flatMap((list) =>
    formsOf(pod, list).flatMap(({ path, unknownFields }) => [
      ...(list.deprecation === undefined ? [] : [`${path}: ${list.deprecation}`]),
      ...unknownFields.map((field) => `${path}: unknown field ${JSON.stringify(field)}`),
    ]),
  );

/** A client cannot set the status annotations. */
export function keepOlderStatuses(pod: Pod, old: Pod | undefined): void {
  for (const { statuses: key } of LISTS.flatMap(keysOf)) setAnnotation(pod, key, old?.metadata.annotations?.[key]);
}

/**
 * Copies the statuses to annotations, for each form in which the Pod has the annotation with containers. Removes other status annotations.
 */
export function mirrorOlderStatuses(pod: Pod): void {
  for (const list of LISTS) {
    const statuses = pod.status?.[list.statusField] ?? [];
    for (const keys of keysOf(list)) {
      const used = pod.metadata.annotations?.[keys.containers] !== undefined && statuses.length > 0;
      setAnnotation(pod, keys.statuses, used ? JSON.stringify(statuses) : undefined);
    }
  }
}

function setAnnotation(pod: Pod, key: string, value: string | undefined): void {
  if (pod.metadata.annotations?.[key] === value) return;
  const { [key]: _, ...others } = pod.metadata.annotations ?? {};
  const annotations = value === undefined ? others : { ...others, [key]: value };
  if (Object.keys(annotations).length > 0) pod.metadata.annotations = annotations;
  else delete pod.metadata.annotations;
}

/** An update must not change the annotations with containers, which describe how the Pod was created. */
export function validateOlderFormsUpdate(pod: Pod, old: Pod): FieldError[] {
  return LISTS.flatMap((list) =>
    keysOf(list).flatMap(({ containers: key }) => {
      const before = old.metadata.annotations?.[key];
      const now = pod.metadata.annotations?.[key];
      if (now === before) return [];
      const verbs = before === undefined ? 'add' : 'remove or update';
      return [forbidden(annotationPath(key), `may not ${verbs} ${list.word} container annotations`)];
    }),
  );
}

/** `same` returns whether the annotation's containers, with defaults, equal the containers in the spec. */
export const olderFormFaults = (pod: Pod, same: (form: OlderForm) => boolean): FormFault[] =>
  LISTS.flatMap((list) => formsOf(pod, list)).flatMap((form) => {
    const { field, path, text, failure } = form;
    if (failure !== undefined) return [{ path, text, cause: failure, differs: false }];
    return same(form) ? [] : [differing(path, text, field)];
  });

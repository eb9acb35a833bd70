/**
 * Containers as a JSON array in an annotation: init containers in the alpha and beta form of Kubernetes 1.3 to 1.7, and defer
 * containers from clients whose types lack the field.
 *
 * The annotation is read on create if the field is absent. After that only the field counts, and the annotation is kept unchanged.
 * Statuses are mirrored into the matching status annotation.
 * Source: the proposal of init containers (2016), their pages for 1.5 and 1.6; Convert_v1_Pod_To_api_Pod of v1.5; the
 * specification of defer containers.
 */
import { type FieldError, forbidden } from '../../../../../machinery/field-error.ts';
import type { Container, DeferContainer, Pod } from '../../../../generated/types.ts';
import { annotationPath, differing, type FormFault, readAnnotationJson } from './annotation-json.ts';

/** A list of containers that can also be given in annotations. */
interface ContainerList {
  field: 'initContainers' | 'deferContainers';
  statusField: 'initContainerStatuses' | 'deferContainerStatuses';
  /** The name of the list in messages and annotation keys. */
  word: 'init' | 'defer';
  /** The API groups of the keys, the newer one first. */
  forms: readonly string[];
  /** The replacement, for deprecated forms. */
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

/** pod.beta.kubernetes.io/init-containers and pod.beta.kubernetes.io/init-container-statuses, … */
const keysOf = ({ word, forms }: ContainerList): Keys[] =>
  forms.map((form) => ({ containers: `${form}/${word}-containers`, statuses: `${form}/${word}-container-statuses` }));

export interface OlderForm {
  /** The field that the annotation represents. */
  field: ContainerList['field'];
  /** metadata.annotations[pod.beta.kubernetes.io/init-containers] */
  path: string;
  text: string;
  containers: (Container | DeferContainer)[];
  /** Fields of the JSON that a container does not have. */
  unknownFields: string[];
  /** Why the JSON cannot be decoded. */
  failure?: string;
}

/** The annotations of the Pod for this list, the newer form first. */
function formsOf(pod: Pod, list: ContainerList): OlderForm[] {
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
  const { value, unknownFields, ...rest } = readAnnotationJson(text, 'PodSpec', field);
  return {
    containers: (value[field] ?? []) as unknown as Container[],
    unknownFields: unknownFields.map((path) => path.slice(field.length)),
    ...rest,
  };
}

/**
 * Sets the absent field from the annotation; called before the defaults. If `old` has the same annotations, its init containers
 * are kept instead, because their images may have changed and a client that does not know the field does not send them. Defer
 * containers of an existing Pod are kept elsewhere (keepDeferFields), with or without the annotation.
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

/** Ignores status annotations from clients, as for the status itself: restores those of the old object, or removes them. */
export function keepOlderStatuses(pod: Pod, old: Pod | undefined): void {
  for (const { statuses: key } of LISTS.flatMap(keysOf)) setAnnotation(pod, key, old?.metadata.annotations?.[key]);
}

/** Mirrors the statuses into annotations for clients that use the form in which the Pod was created. */
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

/** The annotations are immutable because they describe how the Pod was created. */
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

/** `same`: whether the containers of the annotation, with defaults, equal those of the spec. */
export const olderFormFaults = (pod: Pod, same: (form: OlderForm) => boolean): FormFault[] =>
  LISTS.flatMap((list) => formsOf(pod, list)).flatMap((form) => {
    const { field, path, text, failure } = form;
    if (failure !== undefined) return [{ path, text, cause: failure, differs: false }];
    return same(form) ? [] : [differing(path, text, field)];
  });

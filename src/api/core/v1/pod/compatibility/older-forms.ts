/**
 * Containers as a JSON array in an annotation: init containers as Kubernetes 1.3 to 1.7 knew them, of the alpha or of the
 * beta API, and defer containers as clients write them whose types do not have the field.
 *
 * The form is read on create where the field is absent; from then on the field is what counts, and the annotation stays as
 * it was written. The statuses are mirrored into the annotation of the same form.
 * Source: the proposal of init containers (2016), their pages for 1.5 and 1.6; Convert_v1_Pod_To_api_Pod of v1.5; the
 * specification of defer containers.
 */
import { type FieldError, forbidden } from '../../../../../machinery/field-error.ts';
import type { Container, DeferContainer, Pod } from '../../../../generated/types.ts';
import { differing, type FormFault, readAnnotationJson } from './annotation-json.ts';

/** A list of containers that annotations may say as well. */
interface ContainerList {
  field: 'initContainers' | 'deferContainers';
  statusField: 'initContainerStatuses' | 'deferContainerStatuses';
  /** As messages and keys name it. */
  word: 'init' | 'defer';
  /** The API groups of the keys, the newer one first. */
  forms: readonly string[];
  /** What to do instead, for forms that are no longer to be used. */
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
  /** The field that the annotation stands for. */
  field: ContainerList['field'];
  /** metadata.annotations[pod.beta.kubernetes.io/init-containers] */
  path: string;
  text: string;
  containers: (Container | DeferContainer)[];
  /** What the JSON has that a container does not. */
  unknownFields: string[];
  /** Why the JSON cannot be read. */
  failure?: string;
}

/** The forms of the list that the Pod has, the newer one first. */
function formsOf(pod: Pod, list: ContainerList): OlderForm[] {
  return keysOf(list).flatMap(({ containers: key }) => {
    const text = pod.metadata.annotations?.[key];
    return text === undefined
      ? []
      : [{ field: list.field, path: annotationPath(key), text, ...readContainers(text, list) }];
  });
}

const annotationPath = (key: string): string => `metadata.annotations[${key}]`;

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
 * Before the defaults: fills in the absent field. Where there is a Pod already (`old`) with what the annotation says, the
 * init containers stay as they are there: their images may have changed, and a client that does not know the field does not
 * send it. The defer containers of a Pod that is there are kept elsewhere, with or without the annotation.
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

/** What clients wrote as statuses does not count, as with the status itself: the old object's stay, or none. */
export function keepOlderStatuses(pod: Pod, old: Pod | undefined): void {
  for (const { statuses: key } of LISTS.flatMap(keysOf)) setAnnotation(pod, key, old?.metadata.annotations?.[key]);
}

/** The statuses of the containers, for whoever reads them in the form that the Pod was written in. */
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

/** The annotations say what the Pod was created with: nobody changes, adds or removes them later. */
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

/** `same`: whether these containers, once they have their defaults, are those of the spec. */
export const olderFormFaults = (pod: Pod, same: (form: OlderForm) => boolean): FormFault[] =>
  LISTS.flatMap((list) => formsOf(pod, list)).flatMap((form) => {
    const { field, path, text, failure } = form;
    if (failure !== undefined) return [{ path, text, cause: failure, differs: false }];
    return same(form) ? [] : [differing(path, text, field)];
  });

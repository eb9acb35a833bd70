/**
 * Support for clients whose types lack the fields that configure defer containers. Such a client can set the fields as a JSON object in an
 * annotation, and a Pod keeps its values of the fields that a PUT omits.
 *
 * Like the annotation with containers (older-forms.ts), the annotation is read on create, for each absent field. After that, only the
 * fields count, and the annotation is kept unchanged. Source: the specification of defer containers, "Fields".
 */
import { type FieldError, forbidden } from '../../../../../machinery/field-error.ts';
import { jsonFields } from '../../../../facts/facts.ts';
import type { DeferSettings, Pod, PodSpec } from '../../../../generated/types.ts';
import { sameValue } from '../compare.ts';
import { specOf } from '../containers.ts';
import { type AnnotationJson, differing, type FormFault, readAnnotationJson } from './annotation-json.ts';

const KEY = 'pod.alpha.kubernetes.io/defer-settings';
/** The annotations in which a client can give the fields of defer containers that the client's types lack. */
export const deferAnnotations = ['pod.alpha.kubernetes.io/defer-containers', KEY] as const;
const PATH = `metadata.annotations[${KEY}]`;

const SETTINGS = 'io.k8s.api.core.v1.DeferSettings';
const settingNames = [...jsonFields(SETTINGS).keys()] as (keyof DeferSettings)[];

/** The field with the defer containers of a Pod, and the fields that configure them. */
export const deferFields = ['deferContainers', ...settingNames] as const satisfies readonly (keyof PodSpec)[];

function readSettings({ metadata }: Pod): (AnnotationJson & { text: string }) | undefined {
  const text = metadata.annotations?.[KEY];
  return text === undefined ? undefined : { text, ...readAnnotationJson(text, SETTINGS) };
}

const copyAbsent = (into: PodSpec, from: PodSpec | DeferSettings, names: readonly (keyof PodSpec)[]): void => {
  const source: Partial<PodSpec> = from;
  for (const name of names) {
    if (into[name] === undefined && source[name] !== undefined) {
      Object.assign(into, { [name]: structuredClone(source[name]) });
    }
  }
};

/** Sets the absent settings of a Pod from the annotation. Must be called before the defaults, which set absent settings too. */
export function readDeferSettings(pod: Pod): void {
  if (pod.spec !== undefined) copyAbsent(pod.spec, readSettings(pod)?.value ?? {}, settingNames);
}

/** The types of the client may lack the fields of deferFields, so that the client omits them. `old`: the Pod that is replaced. */
export function keepDeferFields(pod: Pod, old: Pod): void {
  if (pod.spec !== undefined) copyAbsent(pod.spec, specOf(old), deferFields);
}

export const droppedDeferFields = (spec: PodSpec, old: PodSpec): string[] =>
  deferFields.filter((name) => spec[name] === undefined && !sameValue(old[name], undefined));

export const deferSettingsWarnings = (pod: Pod): string[] =>
  (readSettings(pod)?.unknownFields ?? []).map((field) => `${PATH}: unknown field ${JSON.stringify(field)}`);

/**
 * Reports an annotation that cannot be decoded, and settings whose values in the annotation and in the field differ. Must be called after
 * the defaults.
 */
export function deferSettingsFaults(pod: Pod): FormFault[] {
  const read = readSettings(pod);
  if (read === undefined) return [];
  const { text, failure } = read;
  if (failure !== undefined) return [{ path: PATH, text, cause: failure, differs: false }];
  const settings = read.value as DeferSettings;
  return settingNames
    .filter((name) => settings[name] !== undefined && settings[name] !== pod.spec?.[name])
    .map((name) => differing(PATH, text, name));
}

/** An update must not change the annotation, which describes how the Pod was created. */
export function validateDeferSettingsUpdate(pod: Pod, old: Pod): FieldError[] {
  const before = old.metadata.annotations?.[KEY];
  if (pod.metadata.annotations?.[KEY] === before) return [];
  return [forbidden(PATH, `may not ${before === undefined ? 'add' : 'remove or update'} defer container annotations`)];
}

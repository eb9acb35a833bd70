/**
 * The fields of a Pod that go with its defer containers, for clients whose types do not have them: as a JSON object in an
 * annotation, and kept where an update leaves them out.
 *
 * As with the containers (older-forms.ts), the annotation is read on create for each field that is absent; from then on the
 * field counts, and the annotation stays as it was written. Source: the specification of defer containers, "Fields".
 */
import { type FieldError, forbidden } from '../../../../../machinery/field-error.ts';
import type { DeferSettings, Pod, PodSpec } from '../../../../generated/types.ts';
import { schemaTypes } from '../../../../schema.ts';
import { sameValue } from '../compare.ts';
import { type AnnotationJson, differing, type FormFault, readAnnotationJson } from './annotation-json.ts';

const KEY = 'pod.alpha.kubernetes.io/defer-settings';
/** Where clients give the fields that their types do not have. */
export const deferAnnotations = ['pod.alpha.kubernetes.io/defer-containers', KEY] as const;
const PATH = `metadata.annotations[${KEY}]`;

const settingNames = Object.keys(schemaTypes['DeferSettings'] ?? {}) as (keyof DeferSettings)[];

/** The fields that belong to the defer containers of a Pod. */
const deferFields = ['deferContainers', ...settingNames] as const satisfies readonly (keyof PodSpec)[];

function readSettings({ metadata }: Pod): (AnnotationJson & { text: string }) | undefined {
  const text = metadata.annotations?.[KEY];
  return text === undefined ? undefined : { text, ...readAnnotationJson(text, 'DeferSettings') };
}

const copyAbsent = (into: PodSpec, from: PodSpec | DeferSettings, names: readonly (keyof PodSpec)[]): void => {
  const source: Partial<PodSpec> = from;
  for (const name of names) {
    if (into[name] === undefined && source[name] !== undefined) {
      Object.assign(into, { [name]: structuredClone(source[name]) });
    }
  }
};

/** Before the defaults of a new Pod: fills in the fields that are absent. */
export function readDeferSettings(pod: Pod): void {
  if (pod.spec !== undefined) copyAbsent(pod.spec, readSettings(pod)?.value ?? {}, settingNames);
}

/** A Pod that replaces another keeps the fields that the client left out: its types may not have them. */
export function keepDeferFields(pod: Pod, old: Pod): void {
  if (pod.spec !== undefined) copyAbsent(pod.spec, old.spec ?? { containers: [] }, deferFields);
}

/** The names of the fields that the old spec has and the new one does not. */
export const droppedDeferFields = (spec: PodSpec, old: PodSpec): string[] =>
  deferFields.filter((name) => spec[name] === undefined && !sameValue(old[name], undefined));

export const deferSettingsWarnings = (pod: Pod): string[] =>
  (readSettings(pod)?.unknownFields ?? []).map((field) => `${PATH}: unknown field ${JSON.stringify(field)}`);

/** Once the defaults are set: each setting that is given in both forms is the same in both. */
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

/** The annotation says what the Pod was created with. */
export function validateDeferSettingsUpdate(pod: Pod, old: Pod): FieldError[] {
  const before = old.metadata.annotations?.[KEY];
  if (pod.metadata.annotations?.[KEY] === before) return [];
  return [forbidden(PATH, `may not ${before === undefined ? 'add' : 'remove or update'} defer container annotations`)];
}

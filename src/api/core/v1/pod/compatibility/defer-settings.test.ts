import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { DeferSettings, Pod, PodSpec } from '../../../../generated/types.ts';
import { podKind } from '../index.ts';
import { defaulted, deferOf, podOf } from '../pod-fixtures.ts';

const ENTRIES = 'pod.alpha.kubernetes.io/defer-containers';
const KEY = 'pod.alpha.kubernetes.io/defer-settings';
const PATH = `metadata.annotations[${KEY}]`;
const context = { now: 0 };

const settings: DeferSettings = {
  postExitGracePeriodSeconds: 10,
  preStopPolicy: 'AfterPreExit',
  deferContainerGracePeriodExtensionInterval: 5,
  deferContainerGracePeriodExtensionCount: 2,
  prePullDeferImages: false,
};

const annotated = (text: string, spec: Partial<PodSpec> = {}): Pod => {
  const pod = podOf({ deferContainers: [deferOf('entry', { timeoutSeconds: 5 })], ...spec });
  return { ...pod, metadata: { ...pod.metadata, annotations: { [KEY]: text } } };
};
const created = (pod: Pod): Pod => {
  const result = defaulted(pod);
  podKind.prepareForCreate?.(result, context);
  return result;
};
const errorsOf = (pod: Pod): string[] => podKind.validateCreate(created(pod)).map(fieldErrorText);

describe('settings of defer containers in an annotation', () => {
  it('the annotation with settings sets absent fields on create', () => {
    const pod = created(annotated(JSON.stringify(settings)));
    expect(pod.spec).toMatchObject(settings);
    expect(pod.metadata.annotations).toEqual({ [KEY]: JSON.stringify(settings) });
    expect(podKind.validateCreate(pod)).toEqual([]);
  });

  it('settings and entries can both be given in annotations', () => {
    const pod = annotated('{"postExitGracePeriodSeconds": 0}', { deferContainers: undefined });
    pod.metadata.annotations = { ...pod.metadata.annotations, [ENTRIES]: '[{"name": "entry", "imageFrom": "app"}]' };
    expect(created(pod).spec).toMatchObject({
      postExitGracePeriodSeconds: 0,
      preStopPolicy: 'Concurrent',
      deferContainers: [{ name: 'entry', imageFrom: 'app' }],
    });
    expect(errorsOf(pod)).toEqual([]);
  });

  it('field names in the annotation with settings are case-insensitive, and null means no settings', () => {
    expect(created(annotated('{"PreStopPolicy": "AfterPreExit"}')).spec?.preStopPolicy).toBe('AfterPreExit');
    expect(errorsOf(annotated('null'))).toEqual([]);
  });

  it.each<[string, string, RegExp]>([
    ['malformed JSON', "{'a': 1}", /Expected property name/],
    ['an empty text', '', /Unexpected end of JSON input/],
    ['a list', '[]', /json: cannot unmarshal array into Go value of type v1.DeferSettings/],
    ['a wrong type', '{"prePullDeferImages": "no"}', /json: cannot unmarshal string into Go .* of type bool/],
  ])('an annotation with settings that cannot be decoded is an error at the annotation: %s', (_, text, message) => {
    const [error = '', ...others] = errorsOf(annotated(text));
    expect(others).toEqual([]);
    expect(error.startsWith(`${PATH}: Invalid value: ${JSON.stringify(text)}: `)).toBe(true);
    expect(error).toMatch(message);
  });

  it('an invalid setting in the annotation is an error of the field that it sets', () => {
    expect(errorsOf(annotated('{"preStopPolicy": "Later"}'))).toEqual([
      'spec.preStopPolicy: Unsupported value: "Later": supported values: "Concurrent", "AfterPreExit"',
    ]);
  });

  it('fields and annotation may contain equal settings, or different ones', () => {
    expect(errorsOf(annotated(JSON.stringify(settings), settings))).toEqual([]);
    expect(errorsOf(annotated('{"prePullDeferImages": true}', { preStopPolicy: 'AfterPreExit' }))).toEqual([]);
  });

  it('each setting that differs between field and annotation is an error', () => {
    const text = JSON.stringify(settings);
    const more = { ...settings, preStopPolicy: 'Concurrent', prePullDeferImages: true };
    expect(errorsOf(annotated(text, more))).toEqual(
      ['preStopPolicy', 'prePullDeferImages'].map(
        (name) => `${PATH}: Invalid value: ${JSON.stringify(text)}: must be equal to spec.${name} if both are set`,
      ),
    );
  });

  it('an unknown field in the annotation with settings causes a warning', () => {
    expect(podKind.warnings?.(created(annotated('{"colour": "red"}')))).toEqual([`${PATH}: unknown field "colour"`]);
  });

  it.each([
    ['update', (pod: Pod, old: Pod) => podKind.validateUpdate(pod, old)],
    ['status write', (pod: Pod, old: Pod) => podKind.subresources['status']?.validate?.(pod, old) ?? []],
  ])('the annotation with settings is immutable on an existing Pod: %s', (_, validate) => {
    const old = created(annotated('{}'));
    old.metadata.resourceVersion = '7';
    const without = structuredClone(old);
    delete without.metadata.annotations;
    const changed = structuredClone(old);
    changed.metadata.annotations = { [KEY]: '{ }' };
    const refused = (verbs: string) => [`${PATH}: Forbidden: may not ${verbs} defer container annotations`];
    expect(validate(without, old).map(fieldErrorText)).toEqual(refused('remove or update'));
    expect(validate(changed, old).map(fieldErrorText)).toEqual(refused('remove or update'));
    expect(validate(old, without).map(fieldErrorText)).toEqual(refused('add'));
  });

  it('an update does not compare the annotation with settings with the fields', () => {
    const old = created(annotated('{"preStopPolicy": "AfterPreExit"}'));
    old.metadata.resourceVersion = '7';
    if (old.spec !== undefined) old.spec.preStopPolicy = 'Concurrent';
    expect(podKind.validateUpdate(structuredClone(old), old)).toEqual([]);
  });
});

describe('a PUT of a Pod by a client whose types do not have the fields', () => {
  const fieldsOf = (pod: Pod) => Object.entries(pod.spec ?? {});
  const isOurs = ([name]: [string, unknown]): boolean => /defer|postExit|preStop/i.test(name);

  it.each<[string, Pod]>([
    ['set as fields', podOf({ deferContainers: [deferOf('entry')], ...settings })],
    ['set in annotations', annotated(JSON.stringify(settings))],
    ['only the defaults', podOf({ deferContainers: [deferOf('entry')] })],
    ['extension by liveness', podOf({ deferContainers: [deferOf('entry')], deferContainerGracePeriodExtension: true })],
  ])('an update from a client without the fields of defer containers leaves them unchanged: %s', (_, given) => {
    const old = created(given);
    old.metadata.resourceVersion = '7';
    // The images of entries may have changed since the Pod was created.
    for (const entry of old.spec?.deferContainers ?? []) entry.image = 'busybox:1.36';
    const pod = structuredClone(old);
    pod.spec = Object.fromEntries(fieldsOf(old).filter((field) => !isOurs(field))) as unknown as PodSpec;
    pod.metadata.labels = { changed: 'yes' };
    podKind.keepUnsent?.(pod, old);
    podKind.defaults?.(pod, old);
    podKind.prepareForUpdate?.(pod, old, context);
    expect(podKind.validateUpdate(pod, old)).toEqual([]);
    expect(pod.spec).toEqual(old.spec);
    expect(pod.metadata.generation).toBe(old.metadata.generation);
  });

  it('an update adds no fields to a Pod without defer containers', () => {
    const old = created(podOf());
    const pod = structuredClone(old);
    podKind.keepUnsent?.(pod, old);
    expect(pod).toEqual(old);
  });
});

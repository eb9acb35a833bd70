import { expect, test } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { AppArmorProfile, Pod, PodSpec } from '../../../../generated/types.ts';
import { podKind } from '../index.ts';
import { containerOf, defaulted, deferOf, podOf } from '../pod-fixtures.ts';
import { validateAppArmor } from './app-armor.ts';

const keyOf = (container: string): string => `container.apparmor.security.beta.kubernetes.io/${container}`;
const pathOf = (container: string): string => `metadata.annotations[${keyOf(container)}]`;
const deprecated = 'deprecated since v1.30; use the "appArmorProfile" field instead';
const annotated = (annotations: Record<string, string>, spec: Partial<PodSpec> = {}): Pod => {
  const pod = defaulted(podOf(spec));
  pod.metadata.annotations = Object.fromEntries(
    Object.entries(annotations).map(([name, value]) => [keyOf(name), value]),
  );
  return pod;
};
const created = (pod: Pod): { warnings: string[]; errors: string[] } => {
  const warnings: string[] = [];
  podKind.prepareForCreate?.(pod, { now: 0, warn: (sentence) => void warnings.push(sentence) });
  return { warnings, errors: podKind.validateCreate(pod).map(fieldErrorText) };
};
const own = (appArmorProfile: AppArmorProfile): Partial<PodSpec> => ({
  containers: [containerOf('app', { securityContext: { appArmorProfile } })],
});

test.each<[string, AppArmorProfile]>([
  ['unconfined', { type: 'Unconfined' }],
  ['runtime/default', { type: 'RuntimeDefault' }],
  ['localhost/k8s-deny', { type: 'Localhost', localhostProfile: 'k8s-deny' }],
])('the AppArmor annotation %s sets the field of its container', (annotation, profile) => {
  const pod = annotated({ app: annotation, clean: annotation }, { deferContainers: [deferOf('clean')] });
  expect(created(pod)).toEqual({
    warnings: [`${pathOf('app')}: ${deprecated}`, `${pathOf('clean')}: ${deprecated}`],
    errors: [],
  });
  expect(pod.spec?.containers[0]?.securityContext?.appArmorProfile).toEqual(profile);
  expect(pod.spec?.deferContainers?.[0]?.securityContext?.appArmorProfile).toEqual(profile);
});

test('an AppArmor annotation equal to the profile of the Pod changes nothing and causes no warning', () => {
  const pod = annotated({ app: 'unconfined' }, { securityContext: { appArmorProfile: { type: 'Unconfined' } } });
  expect(created(pod)).toEqual({ warnings: [], errors: [] });
  expect(pod.spec?.containers[0]?.securityContext?.appArmorProfile).toBeUndefined();
});

test.each<[string, Pod, ...string[]]>([
  [
    'for an unknown container',
    annotated({ other: 'unconfined' }),
    `${pathOf('other')}: Invalid value: "other": container not found`,
  ],
  [
    'with an unknown profile',
    annotated({ app: 'strict' }),
    `${pathOf('app')}: Invalid value: "strict": invalid AppArmor profile name: "strict"`,
  ],
  [
    'and a field with another type',
    annotated({ app: 'unconfined' }, own({ type: 'RuntimeDefault' })),
    'spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match',
  ],
  [
    'and a field with another profile',
    annotated({ app: 'localhost/a' }, own({ type: 'Localhost', localhostProfile: 'b' })),
    'spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation and field must match',
  ],
  [
    'and a field with the same profile',
    annotated({ app: 'localhost/a' }, own({ type: 'Localhost', localhostProfile: 'a' })),
  ],
])('the errors of an AppArmor annotation %s are reported', (_name, pod, ...errors) => {
  expect(created(pod).errors).toEqual(errors);
});

test('AppArmor annotations of an existing Pod are immutable', () => {
  const old = annotated({ app: 'unconfined', gone: 'unconfined' });
  const pod = annotated({ app: 'runtime/default', new: 'unconfined' });
  const about = podKind
    .validateUpdate(pod, old)
    .map(fieldErrorText)
    .filter((text) => text.includes('AppArmor'));
  expect(about).toEqual([
    `${pathOf('app')}: Forbidden: may not remove or update AppArmor annotations`,
    `${pathOf('gone')}: Forbidden: may not remove or update AppArmor annotations`,
    `${pathOf('new')}: Forbidden: may not add AppArmor annotations`,
  ]);
});

test.each([
  ['', 'p.type: Required value: type is required when appArmorProfile is set'],
  ['Odd', 'p.type: Unsupported value: "Odd": supported values: "Localhost", "RuntimeDefault", "Unconfined"'],
])('an AppArmor profile of the type "%s" has one error', (type, expected) => {
  expect(validateAppArmor({ type, localhostProfile: 'x' }, 'p').map(fieldErrorText)).toEqual([expected]);
});

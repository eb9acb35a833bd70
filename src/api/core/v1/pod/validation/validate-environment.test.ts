import { expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { EnvFromSource, EnvVarSource } from '../../../../generated/types.ts';
import { containerOf, defaulted, podOf } from '../pod-fixtures.ts';
import { validatePodCreate } from './validation.ts';

const errorsOf = (more: object): string[] =>
  validatePodCreate(defaulted(podOf({ containers: [containerOf('app', more)] }))).map(fieldErrorText);
const TWICE = 'Invalid value: "": may not have more than one field specified at a time';

it.each<[string, EnvVarSource, string[]]>([
  ['the key of a ConfigMap', { configMapKeyRef: { name: 'c', key: 'k' } }, []],
  ['the key of a Secret', { secretKeyRef: { name: 's', key: 'k' } }, []],
  [
    'the keys of a ConfigMap and a Secret',
    { configMapKeyRef: { name: 'c', key: 'k' }, secretKeyRef: { name: 's', key: 'k' } },
    [`spec.containers[0].env[0].valueFrom: ${TWICE}`],
  ],
  [
    'a key that is not valid',
    { configMapKeyRef: { name: 'c', key: '..' } },
    ['spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Invalid value: "..": must not be \'..\''],
  ],
])('the errors of a variable whose value is %s are reported', (_, valueFrom, expected) => {
  expect(errorsOf({ env: [{ name: 'A', valueFrom }] })).toEqual(expected);
});

it.each<[string, EnvFromSource, string[]]>([
  ['a ConfigMap and a prefix', { prefix: 'A_', configMapRef: { name: 'c' } }, []],
  ['a Secret', { secretRef: { name: 's' } }, []],
  [
    'a prefix that is not valid',
    { prefix: 'A=', secretRef: { name: 's' } },
    [expect.stringMatching(/^spec.containers\[0\].envFrom\[0\].prefix: Invalid value: "A=": a valid environment/)],
  ],
  ['a Secret without a name', { secretRef: {} }, ['spec.containers[0].envFrom[0].secretRef.name: Required value']],
  [
    'a ConfigMap and a Secret',
    { configMapRef: { name: 'c' }, secretRef: { name: 's' } },
    [`spec.containers[0].envFrom: ${TWICE}`],
  ],
])('the errors of variables from %s are reported', (_, source, expected) => {
  expect(errorsOf({ envFrom: [source] })).toEqual(expected);
});

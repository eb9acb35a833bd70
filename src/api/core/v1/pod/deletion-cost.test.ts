import { describe, expect, test } from 'vitest';
import type { FieldError } from '../../../../machinery/field-error.ts';
import type { Pod, PodTemplateSpec } from '../../../generated/types.ts';
import { validateTemplate } from '../pod-template/template.ts';
import { defaultPod } from './defaults.ts';
import { DELETION_COST, deletionCost } from './deletion-cost.ts';
import { validatePodStatusUpdate } from './validation/validate-status.ts';
import { validatePodUpdate } from './validation/validate-update.ts';
import { validatePodCreate } from './validation/validation.ts';

function podWith(cost: string | undefined): Pod {
  const annotations: Record<string, string> = cost === undefined ? {} : { [DELETION_COST]: cost };
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a', namespace: 'default', resourceVersion: '1', annotations },
    spec: { containers: [{ name: 'app', image: 'busybox:1.28' }] },
  };
  defaultPod(pod);
  return pod;
}

const templateWith = (cost: string): PodTemplateSpec => {
  const { metadata, spec } = podWith(cost);
  return { metadata: { name: '', annotations: metadata.annotations ?? {} }, spec: spec ?? { containers: [] } };
};

const texts = (errors: FieldError[]): string[] => errors.map(({ field, body }) => `${field}: ${body}`);

test.each<[string | undefined, number | undefined]>([
  [undefined, 0],
  ['0', 0],
  ['-12', -12],
  ['-012', -12],
  ['2147483647', 2147483647],
  ['-2147483648', -2147483648],
  ['2147483648', undefined],
  ['+5', undefined],
  ['05', undefined],
  ['1.5', undefined],
  ['', undefined],
  ['many', undefined],
])('the cost %s is %s', (text, cost) => {
  expect(deletionCost(podWith(text))).toBe(cost);
  expect(validatePodCreate(podWith(text)).length).toBe(cost === undefined ? 1 : 0);
});

describe('an invalid cost', () => {
  const FIELD = `annotations[${DELETION_COST}]`;
  const CAUSE = 'Invalid value: "+5": must be a 32bit integer';

  test('an invalid cost is rejected in a new Pod, in a template, and in updates of a Pod and of its status', () => {
    const [invalid, valid] = [podWith('+5'), podWith('5')];
    const expected = [`metadata.${FIELD}: ${CAUSE}`];
    expect(texts(validatePodCreate(invalid))).toEqual(expected);
    expect(texts(validatePodUpdate(invalid, valid))).toEqual(expected);
    expect(texts(validatePodStatusUpdate(invalid, valid))).toEqual(expected);
    const template = validateTemplate(templateWith('+5'), undefined, 'spec.template');
    expect(texts(template)).toEqual([`spec.template.${FIELD}: ${CAUSE}`]);
  });

  test('updates of a Pod or template that has an invalid cost may keep the cost', () => {
    const [old, other] = [podWith('+5'), podWith('+6')];
    expect([validatePodUpdate(other, old), validatePodStatusUpdate(old, old)]).toEqual([[], []]);
    expect(validateTemplate(templateWith('+6'), templateWith('+5'), 'spec.template')).toEqual([]);
  });
});

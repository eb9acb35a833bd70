import { describe, expect, it } from 'vitest';
import type { ResourceRequirements } from '../../../../generated/types.ts';
import { containerOf, deferOf, podOf } from '../pod-fixtures.ts';
import { type QosClass, qosClass } from './qos.ts';

const both = { cpu: '1', memory: '1Gi' };
const guaranteed: ResourceRequirements = { requests: both, limits: { cpu: '1000m', memory: '1024Mi' } };

describe('the class of a Pod', () => {
  it.each<[QosClass, string, ResourceRequirements[], ResourceRequirements[], ResourceRequirements[]?]>([
    ['Guaranteed', 'the same of a defer container', [guaranteed], [], [guaranteed]],
    ['Guaranteed', 'a defer container without requests and limits', [guaranteed], [], [{}]],
    ['Guaranteed', 'a defer container with amounts of zero', [guaranteed], [], [{ requests: { cpu: '0' } }]],
    ['Burstable', 'a defer container without a limit for memory', [guaranteed], [], [{ limits: { cpu: '1' } }]],
    [
      'Burstable',
      'a defer container that requests another resource',
      [guaranteed],
      [],
      [{ requests: { 'a.b/c': '1' } }],
    ],
    ['Burstable', 'a request of a defer container alone', [{}], [], [{ requests: { cpu: '1' } }]],
    ['BestEffort', 'nothing, nor of a defer container', [{}], [], [{}]],
    ['BestEffort', 'nothing', [{}], []],
    ['BestEffort', 'zero', [{ requests: { cpu: '0' }, limits: { memory: '0' } }], []],
    ['BestEffort', 'another resource', [{ requests: { 'ephemeral-storage': '1Gi' } }], []],
    ['Guaranteed', 'requests equal to limits', [guaranteed], []],
    ['Guaranteed', 'the same of an init container', [guaranteed], [guaranteed]],
    ['Burstable', 'an init container without limits', [guaranteed], [{}]],
    ['Burstable', 'a request alone', [{ requests: { cpu: '1' } }], []],
    ['Burstable', 'a request below its limit', [{ requests: { cpu: '1', memory: '1Mi' }, limits: both }], []],
    ['Burstable', 'one resource limited', [{ requests: { cpu: '1' }, limits: { cpu: '1' } }], []],
  ])('is %s for %s', (expected, _name, apps, inits, defers = []) => {
    const containers = apps.map((resources, index) => containerOf(`a${index}`, { resources }));
    const initContainers = inits.map((resources, index) => containerOf(`i${index}`, { resources }));
    const deferContainers = defers.map((resources, index) => deferOf(`d${index}`, { resources }));
    expect(qosClass(podOf({ containers, initContainers, deferContainers }))).toBe(expected);
  });
});

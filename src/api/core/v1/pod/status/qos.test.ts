import { describe, expect, it } from 'vitest';
import type { ResourceRequirements } from '../../../../generated/types.ts';
import { containerOf, deferOf, podOf } from '../pod-fixtures.ts';
import { type QosClass, qosClass } from './qos.ts';

const both = { cpu: '1', memory: '1Gi' };
const guaranteed: ResourceRequirements = { requests: both, limits: { cpu: '1000m', memory: '1024Mi' } };

describe('QoS class of a Pod', () => {
  it.each<[QosClass, string, ResourceRequirements[], ResourceRequirements[], ResourceRequirements[]?]>([
    ['Guaranteed', 'a defer container with requests equal to limits', [guaranteed], [], [guaranteed]],
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
    ['Burstable', 'a Pod in which only a defer container has a request', [{}], [], [{ requests: { cpu: '1' } }]],
    ['BestEffort', 'a Pod in which neither the app nor the defer container has requests and limits', [{}], [], [{}]],
    ['BestEffort', 'a Pod without requests and limits', [{}], []],
    ['BestEffort', 'amounts of zero', [{ requests: { cpu: '0' }, limits: { memory: '0' } }], []],
    ['BestEffort', 'a request of another resource', [{ requests: { 'ephemeral-storage': '1Gi' } }], []],
    ['Guaranteed', 'requests equal to limits', [guaranteed], []],
    ['Guaranteed', 'an init container with requests equal to limits', [guaranteed], [guaranteed]],
    ['Burstable', 'an init container without limits', [guaranteed], [{}]],
    ['Burstable', 'a request without a limit', [{ requests: { cpu: '1' } }], []],
    ['Burstable', 'a request below its limit', [{ requests: { cpu: '1', memory: '1Mi' }, limits: both }], []],
    ['Burstable', 'limits of only one resource', [{ requests: { cpu: '1' }, limits: { cpu: '1' } }], []],
  ])('the QoS class is %s for %s', (expected, _name, apps, inits, defers = []) => {
    const containers = apps.map((resources, index) => containerOf(`a${index}`, { resources }));
    const initContainers = inits.map((resources, index) => containerOf(`i${index}`, { resources }));
    const deferContainers = defers.map((resources, index) => deferOf(`d${index}`, { resources }));
    expect(qosClass(podOf({ containers, initContainers, deferContainers }))).toBe(expected);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareQuantities, zeroQuantity } from '../../../../machinery/quantity.ts';
import type { Container, ResourceRequirements } from '../../../generated/types.ts';
import { podSpecs, resources as resourcesArbitrary } from './pod-arbitrary.ts';
import { containerOf, defaulted, podOf } from './pod-fixtures.ts';
import { effectiveLimits, effectiveRequests, resourceTexts } from './resources.ts';

const requests = (...amounts: Record<string, string>[]): Container[] =>
  amounts.map((amount, index) => containerOf(`c${index}`, { resources: { requests: amount } }));
const limits = (...amounts: (Record<string, string> | undefined)[]): Container[] =>
  amounts.map((amount, index) => containerOf(`c${index}`, { resources: amount ? { limits: amount } : {} }));
const sidecar = (amount: Record<string, string>, name: string): Container =>
  containerOf(name, { restartPolicy: 'Always', resources: { requests: amount, limits: amount } });

describe('effective resources', () => {
  it('takes the larger of the largest init container and the sum of the app containers', () => {
    // The first worked example of the init container proposal.
    const pod = podOf({
      initContainers: limits({ cpu: '100m', memory: '1Gi' }, { cpu: '50m', memory: '2Gi' }),
      containers: limits({ cpu: '10m', memory: '1100Mi' }, { cpu: '10m', memory: '1100Mi' }),
    });
    expect(resourceTexts(effectiveLimits(pod))).toEqual({ cpu: '100m', memory: '2200Mi' });
    expect(resourceTexts(effectiveRequests(pod))).toEqual({ cpu: '100m', memory: '2200Mi' });
  });

  it('has no limit where a container has none', () => {
    // The second worked example, under the rule that later pages added: no limit is the highest limit.
    const pod = podOf({
      initContainers: limits({ cpu: '100m', memory: '1Gi' }),
      containers: requests({ cpu: '10m', memory: '1100Mi' }),
    });
    expect(resourceTexts(effectiveRequests(pod))).toEqual({ cpu: '100m', memory: '1100Mi' });
    expect(resourceTexts(effectiveLimits(pod))).toEqual({});
    const initOpen = podOf({ initContainers: limits(undefined), containers: limits({ cpu: '1' }) });
    expect(resourceTexts(effectiveLimits(initOpen))).toEqual({});
  });

  it.each<[string, Container[], Container[], string]>([
    ['sidecars to the app containers', [sidecar({ cpu: '1' }, 's')], requests({ cpu: '2' }), '3'],
    [
      'a sidecar to the init containers after it',
      [sidecar({ cpu: '1' }, 's'), ...requests({ cpu: '5' })],
      requests({ cpu: '2' }),
      '6',
    ],
    [
      'no sidecar to the init containers before it',
      [...requests({ cpu: '5' }), sidecar({ cpu: '1' }, 's')],
      requests({ cpu: '2' }),
      '5',
    ],
    [
      'sidecars to each other',
      [sidecar({ cpu: '1' }, 's'), sidecar({ cpu: '2' }, 't'), ...requests({ cpu: '1' })],
      requests({ cpu: '100m' }),
      '4',
    ],
  ])('adds %s', (_name, initContainers, containers, cpu) => {
    expect(resourceTexts(effectiveRequests(podOf({ initContainers, containers })))['cpu']).toBe(cpu);
  });

  it('adds overhead to requests, and to limits that there are', () => {
    const pod = podOf({ containers: limits({ cpu: '1' }), overhead: { cpu: '100m', memory: '10Mi' } });
    expect(resourceTexts(effectiveRequests(pod))).toEqual({ cpu: '1100m', memory: '10Mi' });
    expect(resourceTexts(effectiveLimits(pod))).toEqual({ cpu: '1100m' });
  });

  it('never requests less for one more container, nor less than any container, nor more than limits allow', () => {
    const more: fc.Arbitrary<ResourceRequirements> = resourcesArbitrary;
    fc.assert(
      fc.property(podSpecs, more, fc.boolean(), (spec, extra, asInit) => {
        const before = defaulted(podOf(spec));
        const added = containerOf('added', { resources: extra });
        const after = defaulted(
          podOf(
            asInit
              ? { ...spec, initContainers: [...(spec.initContainers ?? []), added] }
              : { ...spec, containers: [...spec.containers, added] },
          ),
        );
        const afterRequests = effectiveRequests(after);
        for (const [name, quantity] of effectiveRequests(before)) {
          expect(compareQuantities(afterRequests.get(name) ?? zeroQuantity, quantity)).toBeGreaterThanOrEqual(0);
        }
        for (const [name, limit] of effectiveLimits(after)) {
          expect(compareQuantities(afterRequests.get(name) ?? zeroQuantity, limit)).toBeLessThanOrEqual(0);
        }
      }),
    );
  });
});

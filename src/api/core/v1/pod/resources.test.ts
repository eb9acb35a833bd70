import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addQuantities,
  compareQuantities,
  maxQuantity,
  type Quantity,
  zeroQuantity,
} from '../../../../machinery/quantity.ts';
import type { Container, DeferContainer, Pod, ResourceRequirements } from '../../../generated/types.ts';
import { podSpecs, podSpecsWithoutDefers, resources as resourcesArbitrary } from './pod-arbitrary.ts';
import { containerOf, defaulted, deferOf, podOf } from './pod-fixtures.ts';
import { effectiveLimits, effectiveRequests, resourceQuantities, resourceTexts } from './resources.ts';

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

describe('effective resources of a Pod with defer containers', () => {
  const entry = (name: string, trigger: string, amount: Record<string, string>): DeferContainer =>
    deferOf(name, { trigger, resources: { requests: amount, limits: amount } });
  const cpuOf = (pod: Pod) => [
    resourceTexts(effectiveRequests(pod))['cpu'],
    resourceTexts(effectiveLimits(pod))['cpu'] ?? 'unlimited',
  ];
  const apps = limits({ cpu: '2' }, { cpu: '1' });

  it.each<[string, Container[], Container[], DeferContainer[], string]>([
    [
      'sidecars, the sum of the app containers and the highest PreExit entry',
      [sidecar({ cpu: '100m' }, 's')],
      apps,
      [entry('a', 'PreExit', { cpu: '1' }), entry('b', 'PreExit', { cpu: '4' })],
      '7100m',
    ],
    [
      'sidecars and the highest PostExit entry',
      [sidecar({ cpu: '100m' }, 's')],
      apps,
      [entry('a', 'PostExit', { cpu: '5' }), entry('b', 'PostExit', { cpu: '4' })],
      '5100m',
    ],
    [
      'sidecars and app containers, where entries need less after them',
      [sidecar({ cpu: '100m' }, 's')],
      apps,
      [entry('a', 'PostExit', { cpu: '3' })],
      '3100m',
    ],
    [
      'the highest of the init containers, with the sidecars before it',
      [sidecar({ cpu: '100m' }, 's'), containerOf('i', { resources: { limits: { cpu: '9' } } })],
      apps,
      [entry('a', 'PreExit', { cpu: '5' }), entry('b', 'PostExit', { cpu: '8' })],
      '9100m',
    ],
  ])('are the highest of the parts, here: %s', (_name, initContainers, containers, deferContainers, cpu) => {
    expect(cpuOf(defaulted(podOf({ initContainers, containers, deferContainers })))).toEqual([cpu, cpu]);
  });

  it('are the highest of the parts, each resource by itself', () => {
    const pod = podOf({
      containers: limits({ cpu: '1', memory: '1Gi' }),
      deferContainers: [
        entry('a', 'PreExit', { cpu: '500m', memory: '1Mi' }),
        entry('b', 'PostExit', { cpu: '100m', memory: '2Gi' }),
      ],
    });
    expect(resourceTexts(effectiveRequests(pod))).toEqual({ cpu: '1500m', memory: '2Gi' });
  });

  it.each(['PreExit', 'PostExit'])('have no limit where one part has none: an entry with trigger %s', (trigger) => {
    const resources = { limits: { memory: '1Gi' } };
    const pod = podOf({ containers: limits({ cpu: '1' }), deferContainers: [deferOf('a', { trigger, resources })] });
    expect(cpuOf(pod)).toEqual(['1', 'unlimited']);
    const appOpen = podOf({ containers: [containerOf('app')], deferContainers: [entry('a', trigger, { cpu: '1' })] });
    expect(cpuOf(appOpen)).toEqual(['1', 'unlimited']);
  });

  it.each<[string, ResourceRequirements | undefined]>([
    ['none', undefined],
    ['empty ones', {}],
    ['amounts of zero', { requests: { cpu: '0' }, limits: { memory: '0' } }],
  ])('are not changed by an entry without requests and limits: %s', (_, resources) => {
    const apart = { containers: limits({ cpu: '1', memory: '1Gi' }), overhead: { cpu: '100m' } };
    for (const trigger of ['PreExit', 'PostExit']) {
      const deferContainers = [deferOf('a', { trigger, ...(resources && { resources }) })];
      const pod = defaulted(podOf({ ...apart, deferContainers }));
      expect(effectiveRequests(pod)).toEqual(effectiveRequests(defaulted(podOf(apart))));
      expect(effectiveLimits(pod)).toEqual(effectiveLimits(defaulted(podOf(apart))));
    }
  });

  it('with overhead on top', () => {
    const pod = podOf({
      containers: limits({ cpu: '1' }),
      deferContainers: [entry('a', 'PreExit', { cpu: '1' })],
      overhead: { cpu: '250m' },
    });
    expect(cpuOf(pod)).toEqual(['2250m', '2250m']);
  });

  /** The rule in words: the highest sum of what runs at the same time, at any time of the Pod's life. */
  function highestMoment({ spec }: Pod, name: string): Quantity {
    const amount = (container: Container): Quantity => {
      const texts = { ...container.resources?.limits, ...container.resources?.requests };
      return resourceQuantities(texts).get(name) ?? zeroQuantity;
    };
    const sum = (list: readonly Container[]): Quantity => list.map(amount).reduce(addQuantities, zeroQuantity);
    const { initContainers = [], containers = [], deferContainers = [] } = spec ?? {};
    const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always');
    const moments = [
      ...initContainers.map((each, index) => [
        ...initContainers.slice(0, index).filter((other) => sidecars.includes(other)),
        each,
      ]),
      [...sidecars, ...containers],
      ...deferContainers.map((each) => [...sidecars, ...(each.trigger === 'PostExit' ? [] : containers), each]),
    ];
    const overhead = resourceQuantities(spec?.overhead).get(name) ?? zeroQuantity;
    return addQuantities(moments.map(sum).reduce(maxQuantity, zeroQuantity), overhead);
  }
  const agrees = (spec: Partial<Pod['spec']>): void => {
    const pod = defaulted(podOf(spec));
    const found = effectiveRequests(pod);
    for (const name of ['cpu', 'memory']) {
      expect(compareQuantities(found.get(name) ?? zeroQuantity, highestMoment(pod, name))).toBe(0);
    }
  };

  it('are what runs at the same time at most', () => {
    fc.assert(fc.property(podSpecs, agrees));
  });

  it('are of a Pod without any what they were', () => {
    fc.assert(
      fc.property(podSpecsWithoutDefers, (spec) => {
        agrees(spec);
        expect(effectiveLimits(defaulted(podOf({ ...spec, deferContainers: [] })))).toEqual(
          effectiveLimits(defaulted(podOf(spec))),
        );
      }),
    );
  });

  it('are never less than those of the same Pod without them', () => {
    fc.assert(
      fc.property(podSpecs, ({ deferContainers = [], ...spec }) => {
        const without = effectiveRequests(defaulted(podOf(spec)));
        const withThem = effectiveRequests(defaulted(podOf({ ...spec, deferContainers })));
        for (const [name, quantity] of without) {
          expect(compareQuantities(withThem.get(name) ?? zeroQuantity, quantity)).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });
});

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

describe('effective resources of a Pod', () => {
  it('effective resources are the larger of the largest init container and the sum of the app containers', () => {
    // The first example in the proposal of init containers.
    const pod = podOf({
      initContainers: limits({ cpu: '100m', memory: '1Gi' }, { cpu: '50m', memory: '2Gi' }),
      containers: limits({ cpu: '10m', memory: '1100Mi' }, { cpu: '10m', memory: '1100Mi' }),
    });
    expect(resourceTexts(effectiveLimits(pod))).toEqual({ cpu: '100m', memory: '2200Mi' });
    expect(resourceTexts(effectiveRequests(pod))).toEqual({ cpu: '100m', memory: '2200Mi' });
  });

  it('there is no effective limit if a container has no limit', () => {
    // The second example in the proposal of init containers. The later documentation added the rule that an absent limit counts as the
    // highest limit.
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
    ['those of the app containers', [sidecar({ cpu: '1' }, 's')], requests({ cpu: '2' }), '3'],
    [
      'those of the init containers after it',
      [sidecar({ cpu: '1' }, 's'), ...requests({ cpu: '5' })],
      requests({ cpu: '2' }),
      '6',
    ],
    [
      'none of the init containers before it',
      [...requests({ cpu: '5' }), sidecar({ cpu: '1' }, 's')],
      requests({ cpu: '2' }),
      '5',
    ],
    [
      'those of other sidecars',
      [sidecar({ cpu: '1' }, 's'), sidecar({ cpu: '2' }, 't'), ...requests({ cpu: '1' })],
      requests({ cpu: '100m' }),
      '4',
    ],
  ])('the requests of a sidecar are added to %s', (_name, initContainers, containers, cpu) => {
    expect(resourceTexts(effectiveRequests(podOf({ initContainers, containers })))['cpu']).toBe(cpu);
  });

  it('overhead is added to requests and to existing limits', () => {
    const pod = podOf({ containers: limits({ cpu: '1' }), overhead: { cpu: '100m', memory: '10Mi' } });
    expect(resourceTexts(effectiveRequests(pod))).toEqual({ cpu: '1100m', memory: '10Mi' });
    expect(resourceTexts(effectiveLimits(pod))).toEqual({ cpu: '1100m' });
  });

  it('effective requests never decrease with one more container and never exceed the effective limits', () => {
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
      'sidecars, app containers and the highest PreExit entry',
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
      'sidecars and app containers, if no PostExit entry needs more than the app containers',
      [sidecar({ cpu: '100m' }, 's')],
      apps,
      [entry('a', 'PostExit', { cpu: '3' })],
      '3100m',
    ],
    [
      'the highest init container, with the sidecars before it',
      [sidecar({ cpu: '100m' }, 's'), containerOf('i', { resources: { limits: { cpu: '9' } } })],
      apps,
      [entry('a', 'PreExit', { cpu: '5' }), entry('b', 'PostExit', { cpu: '8' })],
      '9100m',
    ],
  ])(
    'effective resources are the highest sum of containers that run at the same time: %s',
    (_name, initContainers, containers, deferContainers, cpu) => {
      expect(cpuOf(defaulted(podOf({ initContainers, containers, deferContainers })))).toEqual([cpu, cpu]);
    },
  );

  it('the effective amount of each resource is computed separately', () => {
    const pod = podOf({
      containers: limits({ cpu: '1', memory: '1Gi' }),
      deferContainers: [
        entry('a', 'PreExit', { cpu: '500m', memory: '1Mi' }),
        entry('b', 'PostExit', { cpu: '100m', memory: '2Gi' }),
      ],
    });
    expect(resourceTexts(effectiveRequests(pod))).toEqual({ cpu: '1500m', memory: '2Gi' });
  });

  it.each(['PreExit', 'PostExit'])(
    'there is no effective limit if an entry with trigger %s or an app container has no limit',
    (trigger) => {
      const resources = { limits: { memory: '1Gi' } };
      const pod = podOf({ containers: limits({ cpu: '1' }), deferContainers: [deferOf('a', { trigger, resources })] });
      expect(cpuOf(pod)).toEqual(['1', 'unlimited']);
      const appOpen = podOf({ containers: [containerOf('app')], deferContainers: [entry('a', trigger, { cpu: '1' })] });
      expect(cpuOf(appOpen)).toEqual(['1', 'unlimited']);
    },
  );

  it.each<[string, ResourceRequirements | undefined]>([
    ['no resources', undefined],
    ['empty resources', {}],
    ['amounts of zero', { requests: { cpu: '0' }, limits: { memory: '0' } }],
  ])('an entry without requests and limits does not change the effective resources: %s', (_, resources) => {
    const apart = { containers: limits({ cpu: '1', memory: '1Gi' }), overhead: { cpu: '100m' } };
    for (const trigger of ['PreExit', 'PostExit']) {
      const deferContainers = [deferOf('a', { trigger, resources })];
      const pod = defaulted(podOf({ ...apart, deferContainers }));
      expect(effectiveRequests(pod)).toEqual(effectiveRequests(defaulted(podOf(apart))));
      expect(effectiveLimits(pod)).toEqual(effectiveLimits(defaulted(podOf(apart))));
    }
  });

  it('overhead is added to the effective resources of a Pod with defer containers', () => {
    const pod = podOf({
      containers: limits({ cpu: '1' }),
      deferContainers: [entry('a', 'PreExit', { cpu: '1' })],
      overhead: { cpu: '250m' },
    });
    expect(cpuOf(pod)).toEqual(['2250m', '2250m']);
  });

  /** A model that applies the rule directly: the highest sum of the requests of containers that run at the same time, plus the overhead. */
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

  it('effective requests equal the highest sum of containers that run at the same time', () => {
    fc.assert(fc.property(podSpecs, agrees));
  });

  it('an empty list of defer containers does not change the effective resources', () => {
    fc.assert(
      fc.property(podSpecsWithoutDefers, (spec) => {
        agrees(spec);
        expect(effectiveLimits(defaulted(podOf({ ...spec, deferContainers: [] })))).toEqual(
          effectiveLimits(defaulted(podOf(spec))),
        );
      }),
    );
  });

  it('defer containers never reduce the effective requests', () => {
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

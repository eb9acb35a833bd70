/**
 * Tests properties of the three controllers of endpoints while users change Pods, Services and Endpoints, and while the engine is killed
 * between any two of its writes. LIFEPOD_SEED repeats a run; the seed is printed.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import { MANAGED_BY_LABEL, SERVICE_NAME_LABEL } from '../../api/discovery.k8s.io/v1/endpoint-slice/labels.ts';
import type { EndpointSlice, Endpoints, Pod, Service } from '../../api/generated/types.ts';
import { ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { isApiError } from '../../machinery/status.ts';
import { startEndpointSliceMirroring } from '../endpoint-slice-mirroring/endpoint-slice-mirroring.ts';
import { startEndpoints } from '../endpoints/endpoints.ts';
import { isPodReady } from '../ownership/pod-state.ts';
import { type KilledEngines, killedEngines, turns } from '../replicas/killed-engines-fixture.ts';
import { hasSelector } from '../service-pods/follow-services.ts';
import { ipOf, node, pod, service } from '../service-pods/service-pods-fixture.ts';
import { startEndpointSlices } from './endpoint-slice.ts';

const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`properties of endpoints: seed ${seed} (LIFEPOD_SEED sets it)`);

const SERVICES_BY_NAME: Readonly<Record<string, Partial<Service['spec']>>> = {
  web: { selector: { app: 'web' } },
  // Each Pod of this Service is also one of `web`.
  part: { selector: { app: 'web', tier: 'front' }, publishNotReadyAddresses: true },
  hand: { selector: {} },
};
const NAMES = Object.keys(SERVICES_BY_NAME);

type Step =
  | { do: 'pod'; number: number; app: string; tier: string; isReady: boolean; port: number }
  | { do: 'removePod' | 'terminate' | 'end' | 'hand'; number: number }
  | { do: 'service'; name: string; targetPort: string | number }
  | { do: 'removeService'; name: string }
  | { do: 'kill'; afterWrites: number }
  | { do: 'run'; turns: number }
  | { do: 'settle' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('pod'),
      number: fc.nat(5),
      app: fc.constantFrom('web', 'other'),
      tier: fc.constantFrom('front', 'back'),
      isReady: fc.boolean(),
      port: fc.constantFrom(8080, 9090),
    }),
  },
  fc.record({ do: fc.constantFrom('removePod', 'terminate', 'end', 'hand'), number: fc.nat(5) }),
  fc.record({
    do: fc.constant('service'),
    name: fc.constantFrom(...NAMES),
    targetPort: fc.constantFrom('http', 5000),
  }),
  fc.record({ do: fc.constant('removeService'), name: fc.constantFrom(...NAMES) }),
  fc.record({ do: fc.constant('kill'), afterWrites: fc.integer({ min: 1, max: 6 }) }),
  fc.record({ do: fc.constant('run'), turns: fc.nat(30) }),
  fc.record({ do: fc.constant('settle') }),
);

/** Returns texts such as `10.0.0.1 8080 true`: address, port, readiness. */
const shownBy = (slices: readonly EndpointSlice[]): string[] =>
  slices.flatMap(({ endpoints, ports = [] }) =>
    endpoints.flatMap(({ addresses, conditions }) => `${addresses[0]} ${ports[0]?.port} ${conditions?.ready}`),
  );

const shownByEndpoints = ({ subsets = [] }: Pick<Endpoints, 'subsets'> = {}): string[] =>
  subsets.flatMap(({ addresses = [], notReadyAddresses = [], ports = [] }) => [
    ...addresses.map(({ ip }) => `${ip} ${ports[0]?.port} true`),
    ...notReadyAddresses.map(({ ip }) => `${ip} ${ports[0]?.port} false`),
  ]);

class World {
  readonly #backend: RegistryBackend;
  readonly #engines: KilledEngines;
  readonly faults: string[] = [];
  /** Whether a create of a killed engine may have taken effect late, so that an endpoint may be in two slices until the next settle(). */
  #isLate = false;

  constructor(backend: RegistryBackend, lags: Record<string, number>) {
    this.#backend = backend;
    const start: Parameters<typeof killedEngines>[1]['start'] = async (options) => {
      await Promise.all(
        [startEndpointSlices, startEndpoints, startEndpointSliceMirroring].map((begin) => begin(options)),
      );
    };
    this.#engines = killedEngines(backend, { start, lags, written: () => this.#check() });
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'kill':
        return this.#engines.killAfter(step.afterWrites);
      case 'run':
        return turns(step.turns);
      case 'settle':
        return this.settle();
      default:
        return this.#change(step).catch((error: unknown) => {
          if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
        });
    }
  }

  async begin(): Promise<void> {
    await this.#backend.set(NODES, node('n1'));
    for (const name of NAMES) await this.#change({ do: 'service', name, targetPort: 'http' });
    const byHand = { [SERVICE_NAME_LABEL]: 'web', [MANAGED_BY_LABEL]: 'a-user' };
    const metadata = { name: 'by-hand', namespace: 'a', labels: byHand };
    const slice = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, addressType: 'IPv4' };
    await this.#backend.set<EndpointSlice>(ENDPOINT_SLICES, { ...slice, endpoints: [{ addresses: ['192.0.2.1'] }] });
  }

  async settle(): Promise<void> {
    await this.#engines.settled();
    const writes = (): string[] => this.#backend.calls.filter((call) => /^(create|update|delete) endpoint/.test(call));
    const before = writes().length;
    await turns(150);
    expect(writes().slice(before)).toEqual([]);
    this.#isLate = false;
    this.#check();
    for (const of of this.#objects<Service>(SERVICES)) this.#checkService(of);
    const byHand = this.#objects<EndpointSlice>(ENDPOINT_SLICES).filter(({ metadata }) => metadata.name === 'by-hand');
    expect(byHand.map(({ metadata }) => metadata.generation)).toEqual([1]);
    const services = new Set(this.#objects<Service>(SERVICES).map(({ metadata }) => metadata.name));
    const left = this.#objects<Endpoints>(ENDPOINTS).filter(({ metadata: { name } }) => !services.has(name));
    expect(left.map(({ metadata }) => metadata.name).filter((name) => name !== 'hand')).toEqual([]);
  }

  end = (): void => this.#engines.end();

  #objects = <T>(ref: typeof PODS): T[] =>
    this.#backend.objects(ref).filter(({ metadata }) => metadata.namespace === 'a') as T[];

  #slices(name: string): EndpointSlice[] {
    return this.#objects<EndpointSlice>(ENDPOINT_SLICES).filter(
      ({ metadata: { labels = {} } }) => labels[SERVICE_NAME_LABEL] === name && labels[MANAGED_BY_LABEL] !== 'a-user',
    );
  }

  #checkService(of: Service): void {
    const { name, uid } = of.metadata;
    const endpoints = this.#objects<Endpoints>(ENDPOINTS).find(({ metadata }) => metadata.name === name);
    const slices = this.#slices(name).filter(
      ({ metadata }) => !hasSelector(of) || metadata.ownerReferences?.[0]?.uid === uid,
    );
    const wanted = hasSelector(of) ? this.#wanted(of, () => true) : shownByEndpoints(endpoints);
    expect({ name, shown: shownBy(slices).sort() }).toEqual({ name, shown: wanted.sort() });
    if (!hasSelector(of)) return;
    const publishAll = of.spec?.publishNotReadyAddresses === true;
    const listed = this.#wanted(of, ({ metadata }) => publishAll || metadata.deletionTimestamp === undefined);
    expect({ name, listed: shownByEndpoints(endpoints).sort() }).toEqual({ name, listed: listed.sort() });
  }

  /** Like shownBy(), computed from the Pods for which `isListed` returns true. */
  #wanted({ spec }: Service, isListed: (pod: Pod) => boolean): string[] {
    const selected = this.#objects<Pod>(PODS).filter(({ metadata: { labels = {} } }) =>
      Object.entries(spec?.selector ?? {}).every(([key, value]) => labels[key] === value),
    );
    return selected
      .filter((one) => !hasEnded(one) && isListed(one))
      .map((one) => {
        const target = spec?.ports?.[0]?.targetPort;
        const port = target === 'http' ? one.spec?.containers[0]?.ports?.[0]?.containerPort : target;
        const isReady = isPodReady(one) && one.metadata.deletionTimestamp === undefined;
        return `${one.status?.podIP} ${port} ${spec?.publishNotReadyAddresses === true || isReady}`;
      });
  }

  /** Checks after every write that no endpoint is in two slices. */
  #check(): void {
    this.#isLate ||= this.#engines.takeLateCreates() > 0;
    if (this.#isLate) return;
    for (const of of this.#objects<Service>(SERVICES)) {
      const slices = this.#slices(of.metadata.name);
      const owned = Map.groupBy(slices, ({ metadata }) => metadata.ownerReferences?.[0]?.uid ?? '');
      for (const list of owned.values()) {
        const shown = shownBy(list);
        if (new Set(shown).size < shown.length) this.faults.push(`duplicate endpoints: ${shown}`);
      }
    }
  }

  async #change(step: Step): Promise<void> {
    if (step.do === 'service') {
      const { name, targetPort } = step;
      const ports = [{ port: 80, targetPort, protocol: 'TCP' }];
      const { metadata, spec } = service({ ...SERVICES_BY_NAME[name], ports }, { name });
      const { clusterIP: _, ...kept } = spec ?? {};
      const { uid: _uid, ...rest } = metadata;
      await this.#backend.set<Service>(SERVICES, { apiVersion: 'v1', kind: 'Service', metadata: rest, spec: kept });
      return;
    }
    if (step.do === 'removeService') return this.#backend.remove(SERVICES, 'a', step.name);
    if (step.do === 'removePod') return this.#backend.remove(PODS, 'a', `p${step.number}`);
    if (step.do === 'terminate') return this.#backend.delete(PODS, 'a', `p${step.number}`).then(() => undefined);
    if (step.do === 'end') {
      const { status } = pod('p', { phase: 'Failed', isReady: false, ips: [ipOf(step.number)] });
      return this.#backend.setStatus(PODS, 'a', `p${step.number}`, status ?? {});
    }
    if (step.do === 'hand') {
      const subsets = [{ addresses: [{ ip: ipOf(step.number) }], ports: [{ port: 80 + (step.number % 2) }] }];
      return this.#backend
        .set<Endpoints>(ENDPOINTS, {
          apiVersion: 'v1',
          kind: 'Endpoints',
          metadata: { name: 'hand', namespace: 'a' },
          subsets,
        })
        .then();
    }
    if (step.do !== 'pod') return;
    const { number, app, tier, isReady, port } = step;
    const name = `p${number}`;
    const known = this.#objects<Pod>(PODS).find(({ metadata }) => metadata.name === name);
    const wanted = pod(name, { labels: { app, tier }, isReady, port, ips: [ipOf(number)] });
    // The ports of an existing Pod cannot change.
    if (known !== undefined) wanted.spec = known.spec;
    await this.#backend.set(PODS, { ...wanted, metadata: { ...wanted.metadata, uid: known?.metadata.uid } });
  }
}

test('endpoints converge, no endpoint is in two slices, and slices by hand are left alone', async () => {
  const lags = fc.record({ pods: fc.nat(20), services: fc.nat(20), endpointslices: fc.nat(20), endpoints: fc.nat(20) });
  const property = fc.asyncProperty(lags, fc.array(step, { minLength: 1, maxLength: 25 }), async (lag, steps) => {
    const world = new World(await registryBackend(), lag);
    await world.begin();
    try {
      for (const next of steps) await world.take(next);
      await world.settle();
      expect(world.faults).toEqual([]);
    } finally {
      world.end();
    }
  });
  await fc.assert(property, { numRuns: 60, ...(Number.isNaN(seed) ? {} : { seed }) });
}, 60_000);

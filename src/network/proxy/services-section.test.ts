import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EndpointSlice, Service, ServiceSpec } from '../../api/generated/types.ts';
import type { Section } from '../nftables/section.ts';
import { changeText } from '../nftables/transaction-fixture.ts';
import { type EndpointOptions, endpoint, portOf, serviceOf, sliceOf } from './proxy-fixture.ts';
import type { NodeFacts } from './service-rules.ts';
import { ServicesSection } from './services-section.ts';

const NODE: NodeFacts = {
  nodeName: 'n1',
  zone: 'a',
  podCidrs: ['10.244.0.0/24'],
  serviceCidrs: ['10.96.0.0/16'],
  reservedIps: ['10.96.0.10'],
  api: { ips: ['127.0.0.1'], port: 6443 },
};
const keyOf = ({ metadata }: Service): string => `${metadata.namespace}/${metadata.name}`;

/** Takes in Services until none is affected by another one. */
function take(
  section: ServicesSection,
  services: ReadonlyMap<string, Service | undefined>,
  slices: EndpointSlice[],
): void {
  let pending = [...services.keys()];
  while (pending.length > 0) {
    pending = pending.flatMap((key) => {
      const own = slices.filter(({ metadata }) => `default/${metadata.labels?.['kubernetes.io/service-name']}` === key);
      return [...section.update(key, services.get(key), own)];
    });
  }
}

function sectionOf(services: Service[], slices: EndpointSlice[]): ServicesSection {
  const section = new ServicesSection(NODE);
  take(section, new Map(services.map((service) => [keyOf(service), service])), slices);
  return section;
}

function textOf(section: Section): string[] {
  return [...section.values()]
    .flatMap(({ chains = [], sets = [], elements = [] }) => [
      ...chains.flatMap(({ name, rules }) => rules.map((rule, index) => `chain ${name} ${index}: ${rule}`)),
      ...sets.map(({ name, type }) => `set ${name}: ${type}`),
      ...elements.flatMap(({ set, values }) => [...values].map(([key, value]) => `${set} ${key} -> ${value}`)),
    ])
    .sort();
}

/** Returns lines `SET KEY -> VALUE`, without the prefix `services/` of chains and sets. */
function elementsOf(spec: ServiceSpec, endpoints: EndpointOptions[], status = {}): string[] {
  const service = { ...serviceOf('web', spec), status };
  const slice = sliceOf(
    service,
    endpoints.map((options, index) => endpoint(`10.244.0.${index + 1}`, options)),
  );
  return textOf(sectionOf([service], [slice]).section())
    .filter((line) => line.includes(' -> '))
    .map((line) => line.replaceAll('services/', ''));
}

describe('the rules of a Service', () => {
  const outside: ServiceSpec = {
    type: 'NodePort',
    externalTrafficPolicy: 'Cluster',
    ports: [portOf(80, { nodePort: 30080 })],
  };
  it.each<[string, ServiceSpec, EndpointOptions[], string[]]>([
    ['headless', { clusterIP: 'None', clusterIPs: ['None'] }, [{}], []],
    ['ExternalName', { type: 'ExternalName', externalName: 'a.example' }, [{}], []],
    ['with an address of the node', { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'] }, [{}], []],
    ['with an address of the node, without endpoints', { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'] }, [], []],
    [
      'two endpoints',
      {},
      [{}, {}],
      [
        'addresses-4 10.96.0.1 . tcp . 80 -> goto internal-4-0-2',
        'cluster-ips-4 10.96.0.1 -> ',
        'endpoints-4-0 10.96.0.1 . tcp . 80 -> 10.244.0.1 . 8080',
        'endpoints-4-1 10.96.0.1 . tcp . 80 -> 10.244.0.2 . 8080',
      ],
    ],
    [
      'no endpoints',
      {},
      [],
      ['cluster-ips-4 10.96.0.1 -> ', 'unserved-addresses-4 10.96.0.1 . tcp . 80 -> goto reject'],
    ],
    [
      'policy Local without an endpoint on the node',
      { internalTrafficPolicy: 'Local' },
      [{ node: 'n2' }],
      ['cluster-ips-4 10.96.0.1 -> ', 'unserved-addresses-4 10.96.0.1 . tcp . 80 -> drop'],
    ],
    [
      'a node port',
      outside,
      [{}],
      [
        'addresses-4 10.96.0.1 . tcp . 80 -> goto internal-4-0-1',
        'cluster-ips-4 10.96.0.1 -> ',
        'endpoints-4-0 10.96.0.1 . tcp . 80 -> 10.244.0.1 . 8080',
        'node-port-endpoints-4-0 tcp . 30080 -> 10.244.0.1 . 8080',
        'node-ports-4 tcp . 30080 -> goto node-port-external-4-0-1',
      ],
    ],
    [
      'a node port with the policy Local and endpoints on another node only',
      { ...outside, externalTrafficPolicy: 'Local' },
      [{ node: 'n2' }],
      [
        'addresses-4 10.96.0.1 . tcp . 80 -> goto internal-4-0-1',
        'cluster-ips-4 10.96.0.1 -> ',
        'endpoints-4-0 10.96.0.1 . tcp . 80 -> 10.244.0.1 . 8080',
        'node-port-endpoints-4-0 tcp . 30080 -> 10.244.0.1 . 8080',
        'node-ports-4 tcp . 30080 -> goto node-port-local-4-0-1-0-0',
        'unserved-node-ports-4 tcp . 30080 -> drop',
      ],
    ],
  ])('are elements of maps: %s', (_, spec, endpoints, expected) => {
    expect(elementsOf(spec, endpoints)).toEqual(expected);
  });

  it('leave out an ingress address with the mode Proxy', () => {
    const spec = { type: 'LoadBalancer', externalTrafficPolicy: 'Cluster' };
    const ingress = [{ ip: '192.0.2.7' }, { ip: '192.0.2.8', ipMode: 'Proxy' }, { hostname: 'a.example' }];
    const addresses = elementsOf(spec, [{}], { loadBalancer: { ingress } }).filter((line) =>
      line.startsWith('addresses'),
    );
    expect(addresses.map((line) => line.split(' ')[1])).toEqual(['10.96.0.1', '192.0.2.7']);
  });

  it('leave out Services with a proxy of their own', () => {
    const service = serviceOf('web', {}, { labels: { 'service.kubernetes.io/service-proxy-name': 'x' } });
    expect(textOf(sectionOf([service], []).section()).some((line) => line.includes(' -> '))).toBe(false);
  });
});

describe('the API', () => {
  it('is excluded first wherever Services translate, reject or restrict', () => {
    const chains = [...new ServicesSection(NODE).section().values()].flatMap(({ chains = [] }) => chains);
    const lookUps = chains.filter(({ rules }) => rules.some((rule) => rule.includes(' dport vmap ')));
    expect(lookUps.map(({ name, rules }) => [name, rules[0]])).toEqual(
      ['services/translate', 'services/restrict', 'services/unserved'].map((name) => [
        name,
        'ip daddr { 127.0.0.1 } tcp dport 6443 return',
      ]),
    );
  });
});

describe('a huge Service', () => {
  const countOf = (section: ServicesSection): number =>
    [...section.section().values()]
      .flatMap(({ elements = [] }) => elements)
      .filter(({ set }) => set.startsWith('services/endpoints'))
      .reduce((sum, { values }) => sum + [...values].length, 0);

  it('with many ports and endpoints gets the same part of its endpoints at each port', () => {
    const ports = Array.from({ length: 200 }, (_, index) => portOf(1000 + index, { name: `p${index}` }));
    const service = serviceOf('web', { ports });
    const endpoints = Array.from({ length: 900 }, (_, index) => endpoint(`10.244.${index >> 8}.${index & 255}`));
    const slice = sliceOf(service, endpoints);
    const section = sectionOf([service], [slice]);
    expect(countOf(section)).toBe(200 * 500);
    expect(section.rulesOf('default/web')?.isCut).toBe(true);
    const reversed = sectionOf([service], [{ ...slice, endpoints: endpoints.toReversed() }]);
    expect(textOf(reversed.section())).toEqual(textOf(section.section()));
  });

  it('with many external IPs and ports gets the first of them', () => {
    const ports = Array.from({ length: 200 }, (_, index) => portOf(1000 + index, { name: `p${index}` }));
    const externalIPs = Array.from({ length: 200 }, (_, index) => `198.51.100.${index}`);
    const service = serviceOf('web', { ports, externalIPs });
    const rules = sectionOf([service], [sliceOf(service, [endpoint('10.244.0.1')])]).rulesOf('default/web');
    expect(rules?.claims.length).toBe(10_000);
    expect(rules?.isCut).toBe(true);
  });

  it('keeps all endpoints of an ordinary size', () => {
    const service = serviceOf('web');
    const endpoints = Array.from({ length: 5000 }, (_, index) => endpoint(`10.244.${index >> 8}.${index & 255}`));
    const section = sectionOf([service], [sliceOf(service, endpoints)]);
    expect(countOf(section)).toBe(5000);
    expect(section.rulesOf('default/web')?.isCut).toBe(false);
  });
});

describe('a change', () => {
  const services = Array.from({ length: 50 }, (_, index) =>
    serviceOf(`s${index}`, { clusterIP: `10.96.1.${index}`, clusterIPs: [`10.96.1.${index}`] }),
  );
  const endpoints = (service: Service, ...last: number[]): EndpointSlice =>
    sliceOf(
      service,
      last.map((number) => endpoint(`10.244.0.${number}`)),
    );
  const first = services[0] as Service;

  it('a replaced endpoint is one deleted and one added element', () => {
    const section = sectionOf(
      services,
      services.map((service) => endpoints(service, 1, 2, 3)),
    );
    const before = section.section();
    section.update(keyOf(first), first, [endpoints(first, 1, 4, 3)]);
    expect(changeText('t', before, section.section())?.trim().split('\n')).toEqual([
      'delete element inet t services/endpoints-4-1 { 10.96.1.0 . tcp . 80 }',
      'add element inet t services/endpoints-4-1 { 10.96.1.0 . tcp . 80 : 10.244.0.4 . 8080 }',
    ]);
  });

  it('nothing is written if only labels of the Service change', () => {
    const section = sectionOf([first], [endpoints(first, 1)]);
    const before = section.section();
    section.update(keyOf(first), { ...first, metadata: { ...first.metadata, labels: { a: 'b' } } }, [
      endpoints(first, 1),
    ]);
    expect(changeText('t', before, section.section())).toBe('');
  });

  it('another timeout of the session affinity changes only the rules of its Service', () => {
    const withTimeout = (service: Service, timeoutSeconds: number): Service => ({
      ...service,
      spec: {
        ...service.spec,
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds } },
      },
    });
    const all = services.slice(0, 2).map((service) => withTimeout(service, 60));
    const section = sectionOf(
      all,
      all.map((service) => endpoints(service, 1)),
    );
    const before = section.section();
    section.update(keyOf(first), withTimeout(first, 61), [endpoints(first, 1)]);
    const change = changeText('t', before, section.section());
    const sets = [...(change ?? '').matchAll(/^(add|delete) (?:set|map|chain) (.*)/gm)].map(([, ...found]) => found);
    expect(sets).toEqual([
      ['add', expect.stringMatching(/services\/clients-[0-9a-f]+-61 \{.* timeout 61s;/)],
      ['delete', expect.stringMatching(/services\/clients-[0-9a-f]+-60$/)],
    ]);
  });

  it('a changed claim affects at most one of many Services that claim the same address', () => {
    const rivals = services.map((service, index) =>
      serviceOf(
        `r${index}`,
        { ...service.spec, externalIPs: ['198.51.100.7'] },
        { creationTimestamp: `${2050 - index}` },
      ),
    );
    const section = new ServicesSection(NODE);
    const affected = rivals.map((service) => [...section.update(keyOf(service), service, [])]);
    expect(affected).toEqual(rivals.map((_, index) => (index === 0 ? [] : [`default/r${index - 1}`])));
    const last = rivals.at(-1) as Service;
    expect([...section.update(keyOf(last), undefined, [])]).toEqual(['default/r48']);
    expect([...section.update('default/r7', undefined, [])]).toEqual([]);
  });

  it('nothing but the base remains after the last Service', () => {
    const section = sectionOf(
      services,
      services.map((service) => endpoints(service, 1, 2)),
    );
    take(section, new Map(services.map((service) => [keyOf(service), undefined])), []);
    expect([...section.section().keys()]).toEqual(['base']);
  });
});

interface Specification {
  year: number;
  externalIPs: string[];
  nodePort: number | undefined;
  externalTrafficPolicy: string;
  internalTrafficPolicy: string;
  sessionAffinity: string;
  endpoints: { address: number; node: string; ready: boolean }[];
}
type Version = Record<string, Specification>;

const versions: fc.Arbitrary<Version> = fc.dictionary(
  fc.constantFrom('a', 'b', 'c'),
  fc.record({
    year: fc.integer({ min: 2020, max: 2022 }),
    externalIPs: fc.subarray(['198.51.100.7', '198.51.100.8']),
    nodePort: fc.constantFrom(undefined, 30_080, 30_081),
    externalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
    internalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
    sessionAffinity: fc.constantFrom('None', 'ClientIP'),
    endpoints: fc.array(
      fc.record({ address: fc.integer({ min: 1, max: 5 }), node: fc.constantFrom('n1', 'n2'), ready: fc.boolean() }),
      { maxLength: 5 },
    ),
  }),
  { noNullPrototype: true },
);

function objectsOf(version: Version): { services: Service[]; slices: EndpointSlice[] } {
  const found = Object.entries(version).map(([name, { year, nodePort, endpoints, ...spec }]) => {
    const ports = [portOf(80, nodePort === undefined ? {} : { nodePort })];
    const clusterIP = `10.96.0.${name.charCodeAt(0)}`;
    const service = serviceOf(
      name,
      { ...spec, type: 'NodePort', ports, clusterIP, clusterIPs: [clusterIP] },
      { uid: `${name}-${year}`, creationTimestamp: `${year}-01-01T00:00:00Z` },
    );
    const slice = sliceOf(
      service,
      endpoints.map(({ address, ready, node }) => endpoint(`10.244.0.${address}`, { ready, node })),
    );
    return { service, slice };
  });
  return { services: found.map(({ service }) => service), slices: found.map(({ slice }) => slice) };
}

/** Removes the slots, which depend on earlier changes. */
const withoutSlots = (lines: string[]): string[] =>
  lines
    .map((line) => line.replace(/(endpoints-4-)\d+/g, '$1N').replace(/\d+ : goto services\/endpoint-[0-9a-f]+/g, ''))
    .sort();

describe('the section', () => {
  it('is the same after changes as when it is built at once, and declares nothing twice', () => {
    fc.assert(
      fc.property(fc.array(versions, { minLength: 1, maxLength: 5 }), (steps) => {
        const section = new ServicesSection(NODE);
        for (const version of steps) {
          const { services, slices } = objectsOf(version);
          const all = new Map<string, Service | undefined>(
            ['a', 'b', 'c'].map((name) => [`default/${name}`, undefined]),
          );
          for (const service of services) all.set(keyOf(service), service);
          take(section, all, slices);
        }
        const { services, slices } = objectsOf(steps.at(-1) as Version);
        const text = textOf(section.section());
        const sortedRules = (lines: string[]): string[] =>
          withoutSlots(
            lines.map((line) => (line.startsWith('chain services/affinity') ? line.replace(/ \d+:/, '') : line)),
          );
        expect(sortedRules(text)).toEqual(sortedRules(textOf(sectionOf(services, slices).section())));
        const declared = text.map((line) =>
          line.replace(/ -> .*| \d+: .*|: .*/, (end) => / \d+: /.exec(end)?.[0] ?? ''),
        );
        expect(new Set(declared).size).toBe(declared.length);
      }),
      { numRuns: 300 },
    );
  });
});

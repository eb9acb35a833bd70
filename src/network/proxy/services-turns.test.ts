import { expect, test } from 'vitest';
import type { EndpointSlice, Service } from '../../api/generated/types.ts';
import { endpoint, portOf, serviceOf, sliceOf } from './proxy-fixture.ts';
import { ServicesSection } from './services-section.ts';

/** CPU time does not contain the time of other programs on a busy machine. */
const cpuMillis = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

const range = (length: number): number[] => Array.from({ length }, (_, index) => index);
const addressOf = (index: number): string => `10.${64 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
/** Each slice has 1,000 endpoints. */
const slicesOf = (service: Service, count: number): EndpointSlice[] =>
  range(Math.ceil(count / 1000)).map((slice) =>
    sliceOf(
      service,
      range(1000).map((index) => endpoint(addressOf(count - slice * 1000 - index))),
    ),
  );
const ports = range(200).map((index) => portOf(1000 + index, { name: `p${index}` }));
const balanced = serviceOf('ranges', {
  type: 'LoadBalancer',
  ports,
  loadBalancerSourceRanges: range(20_000).map((index) => `${addressOf(index)}/32`),
});
const ingress = range(50).map((index) => ({ ip: `192.0.2.${index}` }));

test.each<[string, Service, number]>([
  ['150,000 endpoints', serviceOf('endpoints'), 150_000],
  ['30,000 endpoints and session affinity', serviceOf('affinity', { sessionAffinity: 'ClientIP' }), 30_000],
  ['200 ports and 2,000 endpoints', serviceOf('ports', { ports }), 2000],
  [
    '10,000 addresses of load balancers and 20,000 source ranges',
    { ...balanced, status: { loadBalancer: { ingress } } },
    1000,
  ],
  ['50,000 external IPs', serviceOf('external', { externalIPs: range(50_000).map((index) => addressOf(index)) }), 1000],
])(
  'derives the rules of a Service with %s in short steps, also when it changes',
  (_, service, count) => {
    const section = new ServicesSection({
      nodeName: 'n1',
      zone: 'a',
      podCidrs: ['10.0.0.0/8'],
      serviceCidrs: ['10.96.0.0/16'],
      reservedIps: [],
      api: { ips: ['127.0.0.1'], port: 6443 },
    });
    const slices = slicesOf(service, count);
    const key = `default/${service.metadata.name}`;
    let longest = 0;
    let steps = 0;
    const versions: [Service | undefined, EndpointSlice[]][] = [
      [service, slices],
      [service, slices.slice(1)],
      [undefined, []],
    ];
    for (const [version, own] of versions) {
      const all = section.steps(key, version, own);
      for (let isDone = false; !isDone; steps++) {
        const began = cpuMillis();
        isDone = all.next().done === true;
        longest = Math.max(longest, cpuMillis() - began);
      }
      if (version !== undefined) expect(section.rulesOf(key)?.claims.length).toBeGreaterThan(0);
    }
    expect([...section.section().keys()]).toEqual(['base']);
    expect(steps).toBeGreaterThan(50);
    expect(longest).toBeLessThan(400);
  },
  180_000,
);

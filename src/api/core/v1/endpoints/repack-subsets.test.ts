import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { EndpointAddress, EndpointSubset } from '../../../generated/types.ts';
import { repackSubsets } from './repack-subsets.ts';

const at = (...ips: string[]): EndpointAddress[] => ips.map((ip) => ({ ip }));
const A = { name: 'a', port: 80, protocol: 'TCP' };
const B = { name: 'b', port: 81, protocol: 'TCP' };

it.each<[string, EndpointSubset[], EndpointSubset[]]>([
  ['nothing', [], []],
  [
    'two subsets with the same ports are merged',
    [
      { addresses: at('10.0.0.2'), ports: [B, A] },
      { addresses: at('10.0.0.1'), ports: [A, B] },
    ],
    [{ addresses: at('10.0.0.1', '10.0.0.2'), ports: [A, B] }],
  ],
  [
    'two subsets with the same addresses are merged',
    [
      { addresses: at('10.0.0.1'), ports: [B] },
      { addresses: at('10.0.0.1'), ports: [A] },
    ],
    [{ addresses: at('10.0.0.1'), ports: [A, B] }],
  ],
  [
    'an address of two subsets remains in one of them for each of its ports',
    [
      { addresses: at('10.0.0.1', '10.0.0.2'), ports: [A] },
      { addresses: at('10.0.0.1'), ports: [B] },
    ],
    [
      { addresses: at('10.0.0.1', '10.0.0.2'), ports: [A] },
      { addresses: at('10.0.0.1'), ports: [B] },
    ],
  ],
  [
    'an address that is ready and not ready for a port is not ready',
    [
      { addresses: at('10.0.0.1'), notReadyAddresses: at('10.0.0.2'), ports: [A] },
      { addresses: at('10.0.0.2'), ports: [A] },
    ],
    [{ addresses: at('10.0.0.1'), notReadyAddresses: at('10.0.0.2'), ports: [A] }],
  ],
  [
    'addresses without ports remain',
    [{ addresses: at('10.0.0.1') }, { addresses: at('10.0.0.2'), ports: [A] }],
    [{ addresses: at('10.0.0.1') }, { addresses: at('10.0.0.2'), ports: [A] }],
  ],
  [
    'one address of two objects is kept for each of them',
    [
      {
        addresses: [
          { ip: '10.0.0.1', targetRef: { uid: 'b' } },
          { ip: '10.0.0.1', targetRef: { uid: 'a' } },
        ],
        ports: [A],
      },
    ],
    [
      {
        addresses: [
          { ip: '10.0.0.1', targetRef: { uid: 'a' } },
          { ip: '10.0.0.1', targetRef: { uid: 'b' } },
        ],
        ports: [A],
      },
    ],
  ],
])('repacking subsets: %s', (_, subsets, expected) => {
  expect(repackSubsets(subsets)).toEqual(expected);
});

/** The readiness of each address for each port; addresses of subsets without ports have the port `-`. */
function readiness(subsets: readonly EndpointSubset[]): Record<string, boolean> {
  const found: Record<string, boolean> = {};
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of subsets) {
    const keys = ports.length === 0 ? ['-'] : ports.map(({ name = '' }) => name);
    for (const key of keys) {
      for (const { ip } of addresses) found[`${ip} ${key}`] ??= true;
      for (const { ip } of notReadyAddresses) found[`${ip} ${key}`] = false;
    }
  }
  return found;
}

it('repacked subsets say the same, do not depend on the order, and are repacked already', () => {
  const addresses = fc.uniqueArray(fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3'));
  const subset = fc.record({
    addresses: addresses.map((ips) => at(...ips)),
    notReadyAddresses: addresses.map((ips) => at(...ips)),
    ports: fc.uniqueArray(fc.constantFrom(A, B), { minLength: 1 }),
  });
  fc.assert(
    fc.property(fc.array(subset, { maxLength: 5 }), (subsets) => {
      const packed = repackSubsets(subsets);
      const present = packed.filter((one) => one.addresses !== undefined || one.notReadyAddresses !== undefined);
      expect(readiness(present)).toEqual(readiness(subsets));
      expect(repackSubsets(subsets.toReversed())).toEqual(packed);
      expect(repackSubsets(packed)).toEqual(packed);
    }),
  );
});

it('subsets whose repacked form would be many times as large remain as they are', () => {
  const ips = Array.from({ length: 1000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
  const ports = Array.from({ length: 1000 }, (_, index) => ({ name: `p${index}`, port: 1 + index, protocol: 'TCP' }));
  const subsets = [
    { addresses: at(...ips), ports },
    ...ports.map((port) => ({ addresses: at('10.1.0.1'), ports: [port] })),
  ];
  expect(repackSubsets(subsets)).toEqual(subsets);
});

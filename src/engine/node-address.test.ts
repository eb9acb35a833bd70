import { expect, it } from 'vitest';
import type { IpFamily } from '../machinery/ip.ts';
import { type AddressSource, openNodeAddresses } from './node-address.ts';

interface FakeMachine {
  all: string[];
  ways: Partial<Record<IpFamily, string>>;
  asked: number;
}

const sourceOf = (machine: FakeMachine, families: readonly IpFamily[]): AddressSource => ({
  families,
  all: () => [...machine.all],
  async find(family) {
    machine.asked++;
    return machine.ways[family];
  },
  fallback: '10.1.0.1',
});

it('the node address is looked up again when the addresses of the machine change, and its list is updated in place', async () => {
  const machine: FakeMachine = { all: ['192.0.2.1'], ways: { IPv4: '192.0.2.1' }, asked: 0 };
  const address = await openNodeAddresses(sourceOf(machine, ['IPv4']));
  const { ips } = address;
  expect([ips, await address.read(), machine.asked]).toEqual([['192.0.2.1'], ['192.0.2.1'], 1]);
  // The machine's interface to each Pod has the address of the node, too.
  machine.all = ['192.0.2.1', '192.0.2.1'];
  expect([await address.read(), machine.asked]).toEqual([['192.0.2.1'], 1]);
  Object.assign(machine, { all: ['198.51.100.7', '192.0.2.1'], ways: { IPv4: '198.51.100.7' } });
  expect([await address.read(), ips, machine.asked]).toEqual([['198.51.100.7'], ['198.51.100.7'], 2]);
  Object.assign(machine, { all: [], ways: {} });
  expect([[...(await address.read())], await address.read(), machine.asked]).toEqual([['10.1.0.1'], ['10.1.0.1'], 4]);
  machine.ways = { IPv4: '203.0.113.9' };
  expect([[...(await address.read())], await address.read(), machine.asked]).toEqual([
    ['203.0.113.9'],
    ['203.0.113.9'],
    5,
  ]);
});

it('a node of two families has the IPv6 address after the IPv4 address, from when the machine has a route for it', async () => {
  const machine: FakeMachine = { all: ['192.0.2.1', '2001:db8::1'], ways: { IPv4: '192.0.2.1' }, asked: 0 };
  const { ips, read } = await openNodeAddresses(sourceOf(machine, ['IPv4', 'IPv6']));
  expect(ips).toEqual(['192.0.2.1']);
  machine.ways['IPv6'] = '2001:db8::1';
  expect([...(await read())]).toEqual(['192.0.2.1', '2001:db8::1']);
  const { asked } = machine;
  expect([...(await read()), machine.asked]).toEqual(['192.0.2.1', '2001:db8::1', asked]);
  expect(ips).toEqual(['192.0.2.1', '2001:db8::1']);
  Object.assign(machine, { all: ['2001:db8::1'], ways: { IPv6: '2001:db8::1' } });
  expect([...(await read())]).toEqual(['10.1.0.1', '2001:db8::1']);
  Object.assign(machine, { all: ['192.0.2.1'], ways: { IPv4: '192.0.2.1' } });
  expect([...(await read())]).toEqual(['192.0.2.1']);
});

import { expect, it } from 'vitest';
import { openNodeAddress } from './node-address.ts';

it('the node address is looked up again when the addresses of the machine change, and its list is updated in place', async () => {
  const machine = { all: ['192.0.2.1'], way: '192.0.2.1' as string | undefined, asked: 0 };
  const address = await openNodeAddress({
    all: () => [...machine.all],
    async find() {
      machine.asked++;
      return machine.way;
    },
    fallback: '10.1.0.1',
  });
  const { ips } = address;
  expect([ips, await address.read(), machine.asked]).toEqual([['192.0.2.1'], '192.0.2.1', 1]);
  Object.assign(machine, { all: ['198.51.100.7', '192.0.2.1'], way: '198.51.100.7' });
  expect([await address.read(), ips, machine.asked]).toEqual(['198.51.100.7', ['198.51.100.7'], 2]);
  Object.assign(machine, { all: [], way: undefined });
  expect([await address.read(), await address.read(), machine.asked]).toEqual(['10.1.0.1', '10.1.0.1', 4]);
  machine.way = '203.0.113.9';
  expect([await address.read(), await address.read(), machine.asked]).toEqual(['203.0.113.9', '203.0.113.9', 5]);
});

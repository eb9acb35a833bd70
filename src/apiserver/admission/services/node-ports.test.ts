import { expect, test } from 'vitest';
import type { ServiceSpec } from '../../../api/generated/types.ts';
import { assignNodePorts, FIRST_NODE_PORT, LAST_NODE_PORT } from './node-ports.ts';

const FIRST_DYNAMIC = 30_086;

/** `offset`: the random number that the allocator gets, unless it is too large. */
function allocated(isTaken: (port: number) => boolean, offset = 0n, isHostPort = (_port: number) => false): number {
  const spec: ServiceSpec = { type: 'NodePort', ports: [{ port: 80 }] };
  assignNodePorts(spec, undefined, {
    isTaken,
    isHostPort,
    random: (below) => (offset < below ? offset : below - 1n),
    fail: () => expect.fail('the port is not requested'),
    reserve: () => {},
  });
  return spec.ports?.[0]?.nodePort as number;
}

test('a Service gets a node port from above the static band of 86 ports', () => {
  expect(allocated(() => false)).toBe(FIRST_DYNAMIC);
  expect(allocated(() => false, 10_000n)).toBe(LAST_NODE_PORT);
  expect(allocated((port) => port === LAST_NODE_PORT, 10_000n)).toBe(FIRST_DYNAMIC);
});

test('a Service gets a node port from the static band if all ports above it are in use', () => {
  expect(allocated((port) => port >= FIRST_DYNAMIC)).toBe(FIRST_NODE_PORT);
  expect(allocated((port) => port >= FIRST_DYNAMIC, 10_000n)).toBe(FIRST_DYNAMIC - 1);
  expect(() => allocated(() => true)).toThrow('failed to allocate a nodePort: range is full');
});

test('a port of the static band precedes a port above it that is a host port', () => {
  const isHostPort = (port: number): boolean => port >= FIRST_DYNAMIC;
  expect(allocated(() => false, 0n, isHostPort)).toBe(FIRST_NODE_PORT);
  expect(allocated((port) => port < FIRST_DYNAMIC, 0n, isHostPort)).toBe(FIRST_DYNAMIC);
});

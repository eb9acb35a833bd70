/**
 * The form in which subsets are stored: each port occurs in one subset, together with all ports that have the same addresses. There are no
 * duplicate addresses, and all lists are sorted. An address that is both ready and not ready for a port is not ready.
 * Source: RepackSubsets of pkg/api/endpoints of v1.33 (behavior). Upstream sorts subsets and ports by their hashes, lifepod by their
 * values.
 */
import type { CoreV1EndpointPort, EndpointAddress, EndpointSubset } from '../../../generated/types.ts';

/**
 * If repacking had to visit more addresses, the subsets are stored as they were sent. Then many subsets share ports, so that the result
 * would be many times as large as the object.
 */
const MAX_VISITED_ADDRESSES = 300_000;

/** `key` identifies the address by its IP and by the UID of the object behind it. */
interface Entry {
  key: string;
  address: EndpointAddress;
  ready: boolean;
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

const addressKey = ({ ip, targetRef }: EndpointAddress): string => JSON.stringify([ip, targetRef?.uid ?? '']);

const portKey = ({ name = '', port, protocol = '', appProtocol }: CoreV1EndpointPort): string =>
  JSON.stringify([name, port, protocol, appProtocol]);

const comparePorts = (a: CoreV1EndpointPort, b: CoreV1EndpointPort): number =>
  compare(a.name ?? '', b.name ?? '') || a.port - b.port || compare(a.protocol ?? '', b.protocol ?? '');

/** A subset without ports counts as one with the port `undefined`. */
function portsWithSubsets(
  subsets: readonly EndpointSubset[],
): { port: CoreV1EndpointPort | undefined; indexes: number[] }[] {
  const found = new Map<string, { port: CoreV1EndpointPort | undefined; indexes: number[] }>();
  subsets.forEach(({ ports = [] }, index) => {
    for (const port of ports.length === 0 ? [undefined] : ports) {
      const key = port === undefined ? '' : portKey(port);
      const entry = found.get(key) ?? { port, indexes: [] };
      if (entry.indexes.at(-1) !== index) entry.indexes.push(index);
      found.set(key, entry);
    }
  });
  return [...found.values()];
}

function entriesOf(subsets: readonly EndpointSubset[]): Entry[] {
  const entries = new Map<string, Entry>();
  const add = (address: EndpointAddress, ready: boolean): void => {
    const key = addressKey(address);
    const entry = entries.get(key);
    if (entry === undefined) entries.set(key, { key, address, ready });
    else entry.ready &&= ready;
  };
  for (const { addresses = [], notReadyAddresses = [] } of subsets) {
    for (const address of addresses) add(address, true);
    for (const address of notReadyAddresses) add(address, false);
  }
  return [...entries.values()].sort((a, b) => compare(a.key, b.key));
}

const sizeOf = ({ addresses = [], notReadyAddresses = [] }: EndpointSubset): number =>
  addresses.length + notReadyAddresses.length;

function subsetOf(entries: readonly Entry[], ports: CoreV1EndpointPort[]): EndpointSubset {
  const addresses = entries.filter(({ ready }) => ready).map(({ address }) => address);
  const notReadyAddresses = entries.filter(({ ready }) => !ready).map(({ address }) => address);
  return {
    ...(addresses.length === 0 ? {} : { addresses }),
    ...(notReadyAddresses.length === 0 ? {} : { notReadyAddresses }),
    ...(ports.length === 0 ? {} : { ports: ports.sort(comparePorts) }),
  };
}

export function repackSubsets(subsets: readonly EndpointSubset[]): EndpointSubset[] {
  // Ports of the same subsets have the same addresses, so the addresses are visited once for all of them.
  const groups = new Map<string, { indexes: number[]; ports: CoreV1EndpointPort[] }>();
  for (const { port, indexes } of portsWithSubsets(subsets)) {
    const key = indexes.join();
    const group = groups.get(key) ?? { indexes, ports: [] };
    if (port !== undefined) group.ports.push(port);
    groups.set(key, group);
  }
  const chosen = [...groups.values()].map(({ indexes, ports }) => ({
    ports,
    from: indexes.flatMap((index) => subsets[index] ?? []),
  }));
  const visited = chosen.reduce((sum, { from }) => sum + from.reduce((size, subset) => size + sizeOf(subset), 0), 0);
  if (visited > MAX_VISITED_ADDRESSES) return [...subsets];
  const packed = new Map<string, { entries: Entry[]; ports: CoreV1EndpointPort[] }>();
  for (const { ports, from } of chosen) {
    const entries = entriesOf(from);
    const key = JSON.stringify(entries.map((entry) => [entry.key, entry.ready]));
    const known = packed.get(key);
    if (known === undefined) packed.set(key, { entries, ports: [...ports] });
    else known.ports.push(...ports);
  }
  return [...packed]
    .map(([key, { entries, ports }]) => ({ key, subset: subsetOf(entries, ports) }))
    .sort((a, b) => comparePortLists(a.subset.ports, b.subset.ports) || compare(a.key, b.key))
    .map(({ subset }) => subset);
}

function comparePortLists(a: readonly CoreV1EndpointPort[] = [], b: readonly CoreV1EndpointPort[] = []): number {
  for (const [index, port] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    const order = comparePorts(port, other);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

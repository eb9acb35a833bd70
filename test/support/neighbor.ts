/** A network namespace that is connected to the machine like another machine in the same network, and uses the machine as its router. */
import { randomInt } from 'node:crypto';
import { runCommandOk } from '../../src/platform/processes.ts';
import { createNetworkNamespace, type NetworkNamespace } from './network-namespace.ts';

export interface Neighbor extends NetworkNamespace {
  machineIp: string;
}

/** The network is a random /24 network of 198.18.0.0/15, which is reserved for benchmarks (RFC 2544). */
export async function createNeighbor(): Promise<Neighbor> {
  const neighbor = await createNetworkNamespace();
  const link = `lpt${neighbor.name.slice(-8)}`;
  const network = `198.${randomInt(18, 20)}.${randomInt(256)}`;
  const machineIp = `${network}.1`;
  await runCommandOk('ip', ['link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', neighbor.name]);
  await runCommandOk('ip', ['address', 'add', `${machineIp}/24`, 'dev', link]);
  await runCommandOk('ip', ['link', 'set', link, 'up']);
  await neighbor.runOk('ip', ['address', 'add', `${network}.2/24`, 'dev', 'eth0']);
  await neighbor.runOk('ip', ['link', 'set', 'eth0', 'up']);
  await neighbor.runOk('ip', ['route', 'add', 'default', 'via', machineIp]);
  return { ...neighbor, machineIp };
}

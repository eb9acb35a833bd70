/** Lists everything that programs can change in the network of a machine, to find changes that lifepod leaves behind. */
import type { NetworkNamespace } from './network-namespace.ts';

/** By kind of object (with 6 for IPv6). Each line of the output describes one object. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  link: ['ip', '-oneline', '-details', 'link', 'show'],
  address: ['ip', '-oneline', 'address', 'show'],
  route: ['ip', '-4', 'route', 'show', 'table', 'all'],
  route6: ['ip', '-6', 'route', 'show', 'table', 'all'],
  rule: ['ip', '-4', 'rule', 'show'],
  rule6: ['ip', '-6', 'rule', 'show'],
  nft: ['nft', 'list', 'ruleset'],
};

/** Prints the network parameters, except those that can only be written and the number of connections, which the kernel changes. */
const PARAMETERS = "cd /proc/sys; find net -type f -exec grep -sH '' {} + | grep -v nf_conntrack_count";

/** Resolves with lines such as `route default via 192.0.2.1 dev eth0` and `net/ipv4/ip_forward 1`, sorted. */
export async function machineNetwork({ runOk, run }: NetworkNamespace): Promise<string[]> {
  const lists = await Promise.all(
    Object.entries(LISTS).map(async ([kind, [command = '', ...args]]) => {
      const output = await runOk(command, args);
      return output.split('\n').map((line) => `${kind.replace(/6$/, '')} ${line.trim().replaceAll(/\s+/g, ' ')}`);
    }),
  );
  const { stdout } = await run('sh', '-c', PARAMETERS);
  const parameters = stdout.split('\n').map((line) => line.replace(':', ' ').replaceAll('\t', ' '));
  return [...lists.flat(), ...parameters].filter((line) => line.trim() !== '').sort();
}

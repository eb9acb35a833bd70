/**
 * Deletes stale UDP entries of connection tracking. UDP has no connections: as long as a client sends, its packets are translated like its
 * first packet, so they may reach an endpoint that no longer exists, or no endpoint although there is one now. After the deletion, the
 * current rules translate the next packet of the client.
 *
 * Boundary: conntrack(8) and ip(8). The kernel may have a million entries, so they are read in turns with other work.
 * Source: the cleanup of conntrack entries in pkg/proxy of v1.33 (behavior).
 */
import { canonicalIp, type IpFamily } from '../../machinery/ip.ts';
import { withLimit } from '../../platform/on-abort.ts';
import { linesOf, runCommand, runCommandOk } from '../../platform/processes.ts';
import { workInTurns } from '../../platform/work-in-turns.ts';
import { CONNTRACK_FAMILY } from '../families.ts';
import type { UdpFrontend } from './service-rules.ts';

export interface Flow {
  destination: string;
  destinationPort: number;
  /** The address and port to which the packets go after translation, as `10.244.0.7 . 53`. */
  target: string;
}

/** No two frontends have the same ID at the same time. */
export const frontendId = ({ family, address, port }: Omit<UdpFrontend, 'targets'>): string =>
  `${family} ${address ?? 'node'} ${port}`;

const NO_TARGETS: ReadonlySet<string> = new Set();

/**
 * Returns the frontends whose entries may be stale after a change: those that have lost an endpoint, got their first one, or no longer
 * exist. A frontend that no longer exists has no targets in the result.
 */
export function changedFrontends(before: readonly UdpFrontend[], after: readonly UdpFrontend[]): UdpFrontend[] {
  const old = new Map(before.map((frontend) => [frontendId(frontend), frontend]));
  const kept = new Set(after.map(frontendId));
  // All frontends of a port share one set, which may be large: each set is compared once.
  const compared = new Map<ReadonlySet<string>, { to: ReadonlySet<string>; isKept: boolean }>();
  const keepsAll = (targets: ReadonlySet<string>, to: ReadonlySet<string>): boolean => {
    const known = compared.get(targets);
    if (known?.to === to) return known.isKept;
    const isKept = [...targets].every((target) => to.has(target));
    compared.set(targets, { to, isKept });
    return isKept;
  };
  const changed = after.filter((frontend) => {
    const targets = old.get(frontendId(frontend))?.targets ?? NO_TARGETS;
    return targets.size === 0 ? frontend.targets.size > 0 : !keepsAll(targets, frontend.targets);
  });
  const removed = before.filter((frontend) => !kept.has(frontendId(frontend)));
  return [...changed, ...removed.map((frontend) => ({ ...frontend, targets: new Set<string>() }))];
}

/**
 * Returns a function that returns whether an entry leads to something other than an endpoint of its frontend. `frontends`: by frontendId();
 * read for each entry. `nodeIps`: the addresses of this node.
 */
export function staleness(
  frontends: ReadonlyMap<string, UdpFrontend>,
  family: IpFamily,
  nodeIps: ReadonlySet<string>,
): (flow: Flow) => boolean {
  return (flow) => {
    const at = (address: string | undefined) =>
      frontends.get(frontendId({ family, address, port: flow.destinationPort }))?.targets;
    const ofAddress = at(flow.destination);
    if (ofAddress !== undefined) return !ofAddress.has(flow.target);
    const ofNode = nodeIps.has(flow.destination) ? at(undefined) : undefined;
    if (ofNode === undefined || ofNode.has(flow.target)) return false;
    // Packets to a port of the node that is no node port any more may belong to another program.
    return ofNode.size > 0 || flow.target !== `${flow.destination} . ${flow.destinationPort}`;
  };
}

/**
 * Parses a line of the output of `conntrack --dump --proto udp`; undefined if the line is not an entry. An entry has first the addresses
 * and ports of the client's packets, then the addresses and ports of the replies.
 */
export function parseFlow(line: string): Flow | undefined {
  const fields = [...line.matchAll(/\b(src|dst|sport|dport)=(\S+)/g)].map(([, , value = '']) => value);
  const [, destination = '', , destinationPort, replySource = '', , replySourcePort] = fields;
  if (replySourcePort === undefined) return undefined;
  const text = (address: string): string => canonicalIp(address) ?? address;
  return {
    destination: text(destination),
    destinationPort: Number(destinationPort),
    target: `${text(replySource)} . ${replySourcePort}`,
  };
}

/** The maximum number of entries that are remembered before they are deleted. conntrack(8) waits meanwhile. */
const MAX_REMEMBERED = 100;

/** How long conntrack(8) or ip(8) may take for the next lines, or for a deletion. */
const LIMIT_MILLIS = 60_000;

export interface DeletionOptions {
  signal: AbortSignal;
  /** The network namespace of ip-netns(8); by default, the namespace of this process. */
  namespace?: string;
  /** How long conntrack(8) or ip(8) may make no progress; by default, LIMIT_MILLIS. */
  limitMillis?: number;
}

/**
 * Deletes the stale entries of the frontends. `frontends`: by frontendId(); their targets may change during the call. Rejects if
 * conntrack(8) or ip(8) fails, or makes no progress for `limitMillis`.
 */
export function deleteStaleFlows(
  frontends: ReadonlyMap<string, UdpFrontend>,
  { signal, namespace, limitMillis = LIMIT_MILLIS }: DeletionOptions,
): Promise<void> {
  const late = new Error(`conntrack made no progress for ${limitMillis / 1000} s and was killed`);
  return withLimit(signal, limitMillis, late, (limited, progressed) =>
    examine(frontends, limited, progressed, namespace),
  );
}

async function examine(
  frontends: ReadonlyMap<string, UdpFrontend>,
  signal: AbortSignal,
  progressed: () => void,
  namespace: string | undefined,
): Promise<void> {
  const inside = (...command: string[]): [string, string[]] => {
    const [first = '', ...rest] = namespace === undefined ? command : ['ip', 'netns', 'exec', namespace, ...command];
    return [first, rest];
  };
  const all = [...frontends.values()];
  const hasNodePorts = all.some(({ address }) => address === undefined);
  const nodeIps = hasNodePorts
    ? addressesIn(await runCommandOk(...inside('ip', '-json', 'address', 'show'), { signal }))
    : new Set<string>();
  const betweenSteps = workInTurns();
  const families = new Set(all.map(({ family }) => family));
  for (const family of families) {
    const isStale = staleness(frontends, family, nodeIps);
    const select = ['--family', CONNTRACK_FAMILY[family], '--proto', 'udp'];
    /** Entries that differ only in the client are deleted together. */
    const stale = new Map<string, Flow>();
    const deleteAll = async (): Promise<void> => {
      for (const flow of stale.values()) {
        // The exit code is ignored: it is not 0 if the entries have already expired.
        await runCommand(...inside('conntrack', '--delete', ...select, ...criteria(flow)), { signal });
        progressed();
      }
      stale.clear();
    };
    for await (const lines of linesOf(...inside('conntrack', '--dump', ...select), { signal })) {
      progressed();
      for (const line of lines) {
        const flow = parseFlow(line);
        if (flow === undefined || !isStale(flow)) continue;
        stale.set(`${flow.destination} ${flow.destinationPort} ${flow.target}`, flow);
        if (stale.size >= MAX_REMEMBERED) await deleteAll();
      }
      await betweenSteps();
    }
    await deleteAll();
  }
}

function criteria({ destination, destinationPort, target }: Flow): string[] {
  const [address = '', port = ''] = target.split(' . ');
  const original = ['--orig-dst', destination, '--orig-port-dst', String(destinationPort)];
  return [...original, '--reply-src', address, '--reply-port-src', port];
}

function addressesIn(output: string): ReadonlySet<string> {
  const links = JSON.parse(output) as { addr_info: { local: string }[] }[];
  return new Set(links.flatMap(({ addr_info }) => addr_info.map(({ local }) => local)));
}

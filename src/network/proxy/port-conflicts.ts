/**
 * Reports ports of the machine that a Service has got although something else uses them: a program that listens, from which the rules take
 * the connections, the API, which keeps its connections, or another engine on the machine.
 *
 * Boundary: runs ss(8) and nft(8) after ports were assigned. A program or an engine that takes such a port later is not noticed here.
 */
import type { EndpointSlice, Service } from '../../api/generated/types.ts';
import { canonicalIp, parseIp, parseIpRange, rangeContains } from '../../machinery/ip.ts';
import { runCommandOk } from '../../platform/processes.ts';
import type { ApiAddresses } from '../api-address.ts';
import { FAMILIES, familyOf, NFT_WORDS } from '../families.ts';
import { listOtherEngines, nft } from '../nftables/nft.ts';
import { NAMES } from './base-rules.ts';
import type { Frontend } from './frontends.ts';
import { portsIn, portText, sharedPort } from './other-engines.ts';

export interface ConflictOptions {
  table: string;
  podCidrs: readonly string[];
  api: ApiAddresses;
  namespace?: string;
  signal: AbortSignal;
  slicesOf(key: string): Iterable<EndpointSlice>;
  /** Called for each conflict. `message` says what is wrong, and what to do. */
  found(service: Service, message: string): void;
}

interface Candidate {
  /** `<namespace>/<name>` of the Service. */
  key: string;
  service: Service;
  frontend: Frontend;
}

export class PortConflicts {
  readonly #options: ConflictOptions;
  /** By the key of the Service: the IDs of the frontends that have been or will be examined. */
  readonly #known = new Map<string, ReadonlySet<string>>();
  #candidates: Candidate[] = [];

  constructor(options: ConflictOptions) {
    this.#options = options;
  }

  /**
   * Takes the new frontends of the Service into the next examination. `frontends`: node ports and load balancers. `service`: undefined if
   * the Service does not exist.
   */
  update(key: string, service: Service | undefined, frontends: readonly Frontend[]): void {
    const known = this.#known.get(key);
    this.#known.delete(key);
    if (service === undefined || frontends.length === 0) return;
    this.#known.set(key, new Set(frontends.map(idOf)));
    for (const frontend of frontends)
      if (known?.has(idOf(frontend)) !== true) this.#candidates.push({ key, service, frontend });
  }

  /** Examines the frontends that are new since the last call. Rejects if ss(8) or nft(8) fails. */
  async examine(): Promise<void> {
    const candidates = this.#candidates;
    this.#candidates = [];
    if (candidates.length === 0) return;
    const found = new Set<string>();
    const report = ({ key, service }: Candidate, message: string): void => {
      if (!found.has(`${key} ${message}`)) this.#options.found(service, message);
      found.add(`${key} ${message}`);
    };
    const listeners = Map.groupBy(await this.#listeners(), ({ port }) => port);
    for (const candidate of candidates) {
      const listener = listeners
        .get(portOf(candidate.frontend))
        ?.find((each) => takesFrom(candidate.frontend, each) && !this.#isEndpoint(candidate));
      if (listener !== undefined) report(candidate, listenerMessage(candidate.frontend, listener, this.#options.api));
    }
    for (const table of await listOtherEngines({ ...this.#options, name: this.#options.table })) {
      const frontends = candidates.map(({ frontend }) => frontend);
      const uses = await this.#usesIn(table, frontends);
      for (const candidate of candidates)
        if (uses.has(candidate.frontend)) report(candidate, sharedPort(nameOf(candidate.frontend), table));
    }
  }

  async #listeners(): Promise<Listener[]> {
    const { namespace, signal } = this.#options;
    const within = namespace === undefined ? [] : ['ip', 'netns', 'exec', namespace];
    const [command = '', ...args] = [...within, 'ss', '-Hltunp'];
    return parseListeners(await runCommandOk(command, args, { signal }));
  }

  /**
   * Returns whether the Service has an endpoint with the port outside the Pod ranges: the program may be this endpoint, a Pod in the
   * network of the node.
   */
  #isEndpoint({ key, frontend }: Candidate): boolean {
    const { podCidrs, slicesOf } = this.#options;
    const ranges = podCidrs.flatMap((cidr) => parseIpRange(cidr) ?? []);
    const isPod = (address: string): boolean => {
      const ip = parseIp(address);
      return ip !== undefined && ranges.some((range) => rangeContains(range, ip));
    };
    return [...slicesOf(key)].some(
      ({ ports, endpoints }) =>
        ports?.some(({ port }) => port === numberOf(frontend)) === true &&
        endpoints.some(({ addresses }) => !addresses.every(isPod)),
    );
  }

  async #usesIn(name: string, frontends: readonly Frontend[]): Promise<Set<Frontend>> {
    const options = { ...this.#options, name };
    // A map is missing while the other engine starts or ends.
    const run = (...args: string[]): Promise<string | undefined> => nft(options, args).catch(() => undefined);
    const uses = new Set<Frontend>();
    for (const family of FAMILIES) {
      const own = frontends.filter((frontend) => frontend.family === family);
      const ports = own.length === 0 ? new Set() : await portsIn(options, family);
      for (const frontend of own) if (ports.has(portOf(frontend))) uses.add(frontend);
      // This map also contains all cluster IPs, so it is not listed as a whole.
      const map = `${NAMES.addresses}-${NFT_WORDS[family].number}`;
      for (const frontend of own.filter(({ address }) => address !== undefined).slice(0, MAX_QUERIES))
        if ((await run('get', 'element', 'inet', name, map, `{ ${frontend.key} }`)) !== undefined) uses.add(frontend);
    }
    return uses;
  }
}

const MAX_QUERIES = 100;

const idOf = ({ family, key }: Frontend): string => `${family} ${key}`;

/** Returns the protocol and port, such as `tcp . 80`. */
const portOf = ({ key }: Frontend): string => key.split(' . ').slice(-2).join(' . ');

const numberOf = ({ key }: Frontend): number => Number(key.split(' . ').at(-1));

const nameOf = (frontend: Frontend): string =>
  `${frontend.address === undefined ? 'node port' : 'load balancer port'} ${portText(portOf(frontend))}`;

/** Returns which of the two gets the connections. The rules leave those to the API to the API (src/network/api-address.ts). */
export function listenerMessage(frontend: Frontend, { port, address, program }: Listener, api: ApiAddresses): string {
  const name = nameOf(frontend);
  const ip = address === '*' ? NFT_WORDS.IPv6.anyAddress : address;
  if (port === `tcp . ${api.port}` && api.ips.includes(ip))
    return `connections to the ${name} at ${address === '*' ? 'any address' : address} reach the API of lifepod instead of this Service: use another port for the Service`;
  return `connections to the ${name} reach this Service instead of ${program}, which listens on ${address}: use another port for one of them`;
}

export interface Listener {
  /** The protocol and port, such as `tcp . 80`. */
  port: string;
  /** The address without a zone; `*` for all addresses of both families. */
  address: string;
  /** The program for messages, such as `the program sshd (process 7)`. */
  program: string;
}

const LISTENER = /^(tcp|udp)\s+\S+\s+\d+\s+\d+\s+(\S+):(\d+)\s+\S+(?:\s+users:\(\("([^"]*)",pid=(\d+))?/;

/** Parses the output of `ss -Hltunp`. */
export function parseListeners(output: string): Listener[] {
  return output.split('\n').flatMap((line) => {
    const [matched, protocol, local = '', port, name, pid] = LISTENER.exec(line) ?? [];
    if (matched === undefined) return [];
    const text = local.replace(/%.*$/, '').replaceAll(/[[\]]/g, '');
    const program = name === undefined ? 'a program' : `the program ${name} (process ${pid})`;
    return [{ port: `${protocol} . ${port}`, address: canonicalIp(text) ?? text, program }];
  });
}

export function takesFrom({ family, address }: Frontend, listener: Listener): boolean {
  if (listener.address === '*') return true;
  if (familyOf(listener.address) !== family) return false;
  if (listener.address === NFT_WORDS[family].anyAddress) return true;
  return address === undefined ? listener.address !== '::1' : listener.address === address;
}

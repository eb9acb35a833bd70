/** Keeps the rules for Pods equal to libcni's records of attached sandboxes, even if another program removes a sandbox. */
import { watch } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { onAbort } from '../../platform/on-abort.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { sharedRuns } from '../../platform/work-in-turns.ts';
import type { ApiAddresses } from '../api-address.ts';
import type { Part, Section } from '../nftables/section.ts';
import type { NftTable } from '../nftables/table.ts';
import { FlowExaminer } from '../proxy/flow-examiner.ts';
import { type Attachment, CNI_CACHE, readAllAddresses, readAttachments } from './attachments.ts';
import { hostPortRules, hostPortSection, udpFrontendsIn } from './host-ports.ts';
import { foreignElements, type PodRange, podElements, podRules, podSection } from './rules.ts';

export interface AttachedPods {
  /**
   * Resolves with the addresses of the sandbox, in canonical form, when the rules contain it and its host ports are open. Rejects if libcni
   * has no record of the sandbox, or if the rules cannot be changed.
   */
  attached(sandboxId: string): Promise<readonly string[]>;
  /**
   * Returns the addresses of the attached sandboxes, in canonical form, by sandbox ID. The sandbox that was attached last is the last one.
   */
  sandboxes(): ReadonlyMap<string, readonly string[]>;
  /** The address must be in canonical form. */
  isAttached(address: string): boolean;
  /** The listener gets the addresses of each sandbox that has been detached. */
  onDetached(listener: (addresses: readonly string[]) => void): void;
  /**
   * Changes the rules so that no host port gets connections to the API, and only this machine and its Pods reach the API at addresses of
   * Pod ranges. Resolves when the kernel has these rules.
   */
  protectApi(api: ApiAddresses): Promise<void>;
}

export interface FollowOptions {
  network: string;
  bridge: string;
  ranges: readonly PodRange[];
  /** The cluster IPs that the machine itself has. */
  serviceIps: readonly string[];
  /** Absent if the port of the API is not known yet. */
  api?: ApiAddresses;
  /** Whether Pods may be in CNI networks of a runtime that lifepod did not start; by default, they are not. */
  hasForeignPods?: boolean;
  rules: NftTable;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}

/** Resolves when the rules contain all attached sandboxes. Follows the records until `signal` aborts. */
export async function followAttachments(options: FollowOptions): Promise<AttachedPods> {
  const { network, log, signal } = options;
  await mkdir(CNI_CACHE, { recursive: true, mode: 0o700 });
  const rules = new AttachmentRules(options);
  const update = sharedRuns(() => rules.update());
  const watcher = watch(CNI_CACHE, (_event, name) => {
    if (name !== null && options.hasForeignPods !== true && !name.startsWith(`${network}-`)) return;
    update().catch((error: Error) => {
      if (!signal.aborted) log.error('cannot update the rules for Pods', { error: error.message });
    });
  });
  onAbort(signal, () => watcher.close());
  await update();
  return {
    async attached(sandboxId) {
      if (!rules.addresses.has(sandboxId)) await update();
      const addresses = rules.addresses.get(sandboxId);
      if (addresses === undefined) throw new Error(`libcni has no record of the network of the sandbox ${sandboxId}`);
      return addresses;
    },
    sandboxes: () => rules.addresses,
    isAttached: (address) => rules.isAttached(address),
    onDetached: (listener) => rules.onDetached(listener),
    protectApi(api) {
      rules.protectApi(api);
      return update();
    },
  };
}

interface Foreign {
  /** By the name of the sandbox's record. */
  addresses: ReadonlyMap<string, readonly string[]>;
  part: Part;
}

const NO_FOREIGN: Foreign = { addresses: new Map(), part: {} };

class AttachmentRules {
  readonly #options: FollowOptions;
  readonly #flows: FlowExaminer;
  #podRules: Part;
  #hostPortRules: Part;
  readonly #elements = new WeakMap<Attachment, Part>();
  #attached: ReadonlyMap<string, Attachment> | undefined;
  /** By sandbox ID. */
  #addresses: ReadonlyMap<string, readonly string[]> = new Map();
  #attachedAddresses: ReadonlySet<string> = new Set();
  #hostPorts: Section = new Map();
  #foreign = NO_FOREIGN;
  readonly #listeners: ((addresses: readonly string[]) => void)[] = [];

  constructor(options: FollowOptions) {
    this.#options = options;
    this.#flows = new FlowExaminer(options);
    this.#podRules = podRules(options);
    this.#hostPortRules = hostPortRules(options.ranges, options.serviceIps, options.api);
  }

  get addresses(): ReadonlyMap<string, readonly string[]> {
    return this.#addresses;
  }

  isAttached(address: string): boolean {
    return this.#attachedAddresses.has(address);
  }

  onDetached(listener: (addresses: readonly string[]) => void): void {
    this.#listeners.push(listener);
  }

  protectApi(api: ApiAddresses): void {
    const { ranges, serviceIps } = this.#options;
    this.#podRules = podRules({ ...this.#options, api });
    this.#hostPortRules = hostPortRules(ranges, serviceIps, api);
  }

  async update(): Promise<void> {
    const { network, rules, ranges } = this.#options;
    const before = this.#attached;
    const foreign = await this.#readForeign();
    const attached = await readAttachments(network, before);
    const added = [...attached].filter(([name]) => before?.has(name) !== true).map(([, attachment]) => attachment);
    const base = this.#hostPortRules;
    const isSame = added.length === 0 && attached.size === before?.size && this.#hostPorts.get('rules') === base;
    if (isSame && foreign === this.#foreign) return;
    const hostPorts = hostPortSection(base, ranges, attached, this.#hostPorts);
    await Promise.all([
      rules.set(
        'pods',
        podSection(this.#podRules, foreign.part, attached, (each) => this.#elementsOf(each)),
      ),
      rules.set('host-ports', hostPorts),
    ]);
    // UDP clients that keep their source port would still reach the Pod that had the host port before, so the stale entries of connection
    // tracking are deleted. Only the first update waits for the deletion, because a conntrack(8) that hangs must not delay new Pods.
    const examined = this.#flows.written(['host-ports'], () => udpFrontendsIn(hostPorts));
    if (before === undefined) await examined;
    await Promise.all(added.map(({ link }) => allowLoopback(link)));
    this.#attached = attached;
    this.#addresses = new Map([...attached.values()].map(({ sandboxId, addresses }) => [sandboxId, addresses]));
    this.#attachedAddresses = new Set([...this.#addresses.values()].flat());
    this.#hostPorts = hostPorts;
    this.#foreign = foreign;
    for (const [name, { addresses }] of before ?? [])
      if (!attached.has(name)) for (const listener of this.#listeners) listener(addresses);
  }

  /** The result is the same object as before if no sandbox has been attached or detached. */
  async #readForeign(): Promise<Foreign> {
    if (this.#options.hasForeignPods !== true) return NO_FOREIGN;
    const before = this.#foreign.addresses;
    const addresses = await readAllAddresses(before);
    const isSame = addresses.size === before.size && [...addresses.keys()].every((name) => before.has(name));
    return isSame ? this.#foreign : { addresses, part: foreignElements([...addresses.values()].flat()) };
  }

  #elementsOf(attachment: Attachment): Part {
    const part = this.#elements.get(attachment) ?? podElements(attachment, this.#options.ranges);
    this.#elements.set(attachment, part);
    return part;
  }
}

/**
 * Lets the node's connections from 127.0.0.1 leave through the interface, and the replies return. Only interfaces that the rules contain
 * may get this permission, because without the rules it would open all loopback addresses of the node to the Pod.
 */
async function allowLoopback(link: string): Promise<void> {
  await writeFile(`/proc/sys/net/ipv4/conf/${link}/route_localnet`, '1').catch((error: NodeJS.ErrnoException) => {
    // The interface does not exist if the sandbox has been removed meanwhile.
    if (error.code !== 'ENOENT') throw error;
  });
}

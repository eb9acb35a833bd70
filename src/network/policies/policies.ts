/**
 * Enforces NetworkPolicies.
 *
 * Boundary: reads NetworkPolicies, Namespaces and Pods; writes the section `policies` of the nftables table, and Events.
 * policies-section.ts decides what the rules are.
 * Invariants:
 *  1. The first section contains everything that the informers have listed, and the sandboxes that an earlier engine has left, even if the
 *     API does not have their Pods any more. The rules of the earlier engine stay until then.
 *  2. No container of a Pod is created before the rules contain the Pod with the addresses of its sandbox: see hold().
 *  3. A Pod stays in the rules until its sandbox is detached, even if it has ended, its object is deleted, or another Pod has its name.
 *  4. Changes are written without a delay, and only a retry after a failure waits. Changes that arrive while rules are derived or written
 *     are part of the next transaction.
 *  5. A policy whose rules nft(8) rejects isolates its Pods and allows nothing.
 */
import { namedPorts } from '../../api/core/v1/pod/containers.ts';
import { mirroredUid } from '../../api/core/v1/pod/mirror.ts';
import type { ContainerPort, Namespace, NetworkPolicy, Pod } from '../../api/generated/types.ts';
import { NAMESPACES, NETWORK_POLICIES, PODS } from '../../api/resources.ts';
import { backOffMillis } from '../../client/back-off.ts';
import type { Client } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import type { InformerHandlers } from '../../client/local-copy.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import { canonicalIp } from '../../machinery/ip.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { inTime } from '../../platform/at-most.ts';
import { pause } from '../../platform/pause.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { runInTurns, sharedRuns, workInTurns } from '../../platform/work-in-turns.ts';
import { followRejections } from '../nftables/follow-rejections.ts';
import type { NftTable } from '../nftables/table.ts';
import type { AttachedPods } from '../pod-network/attached-pods.ts';
import { PoliciesSection, type PolicyPod } from './policies-section.ts';
import { rejectionReporter } from './rejection-reporter.ts';

export interface PoliciesOptions {
  client: Client;
  nodeName: string;
  informers: SharedInformers;
  table: NftTable;
  sandboxes: Pick<AttachedPods, 'isAttached' | 'onDetached'>;
  /** Resolves with the sandboxes that an earlier engine has left. Called again if it rejects. */
  left(): Promise<readonly LeftSandbox[]>;
  /** How long hold() waits until everything that the first rules contain is known. */
  firstRulesMillis: number;
  timers: Timers;
  log: Log;
  /** Ends the updates; the rules remain. */
  signal: AbortSignal;
}

export interface HeldPod {
  namespace: string;
  name: string;
  /** The UID of the sandbox's Pod: of the static Pod, not of its mirror Pod. */
  uid: string;
  labels: Readonly<Record<string, string>>;
  ports: readonly ContainerPort[];
}

export interface LeftSandbox {
  pod: HeldPod;
  addresses: readonly string[];
}

export interface Policies {
  /**
   * Adds the sandbox's addresses to the Pod. Resolves when the rules contain the Pod with these addresses of its sandbox, regardless of the
   * Pod's status. `pod` is used while the API does not have the Pod, for example a new static Pod. Rejects if the rules cannot be written,
   * if the sandbox has been detached meanwhile, or if the objects for the first rules are not known in time.
   */
  hold(pod: HeldPod, addresses: readonly string[], signal: AbortSignal): Promise<void>;
}

const RETRY_BASE_MILLIS = 1000;
const RETRY_MAX_MILLIS = 60_000;

const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;

interface Entry {
  /** The last version of the Pod in the API. */
  stored?: Pod;
  isStored: boolean;
  held?: HeldPod;
  /** The addresses of the Pod's attached sandboxes. While there are none, the addresses in the Pod's status count. */
  addresses: readonly string[];
}

/** Starts the enforcement. The first rules are written as soon as all objects are known. */
export function startPolicies(options: PoliciesOptions): Policies {
  return new Enforcement(options);
}

class Enforcement implements Policies {
  readonly #options: PoliciesOptions;
  readonly #section = new PoliciesSection();
  /** The entries by UID. A mirror Pod has the entry of its static Pod, whose UID the sandboxes have. */
  readonly #entries = new Map<string, Entry>();
  /** The UIDs of the Pods that have the addresses, by address. */
  readonly #holders = new Map<string, string>();
  readonly #policies: Informer<NetworkPolicy>;
  readonly #synced: Promise<unknown>;
  /** Writes the rules, with everything that was taken in before the call. */
  readonly #write: () => Promise<void>;
  #isSynced = false;
  #hasChanged = true;
  #isRunning = false;

  constructor(options: PoliciesOptions) {
    this.#options = options;
    const { informers, sandboxes, timers, signal } = options;
    const report = rejectionReporter({
      ...options,
      policy: (namespace, name) => this.#policies.get(namespace, name),
      podAt: (address) => this.#entries.get(this.#holders.get(address) ?? '')?.stored,
    });
    const takeRejections = followRejections({
      timers,
      signal,
      rejected: report,
      retry: (parts) => {
        this.#section.renew(new Set(parts));
        this.#changed();
      },
    });
    this.#write = sharedRuns(async () => {
      const section = await runInTurns(this.#section.steps(), workInTurns());
      takeRejections(await options.table.set('policies', section));
    });
    sandboxes.onDetached((addresses) => this.#detached(addresses));
    this.#policies = informers.follow<NetworkPolicy>(
      NETWORK_POLICIES,
      { signal },
      each((policy, exists) => {
        this.#section.setPolicy(keyOf(policy), exists ? policy : undefined);
        this.#changed();
      }),
    );
    const namespaces = informers.follow<Namespace>(
      NAMESPACES,
      { signal },
      each(({ metadata: { name = '', labels = {} } }, exists) => {
        this.#section.setNamespace(name, exists ? labels : undefined);
        this.#changed();
      }),
    );
    const pods = informers.follow<Pod>(
      PODS,
      { signal },
      each((pod, exists) => this.#takeIn(pod, exists)),
    );
    const known = [this.#left(), this.#policies.synced, namespaces.synced, pods.synced] as const;
    this.#synced = Promise.all(known).then(([left]) => {
      for (const { pod, addresses } of left) this.#hold(pod, addresses);
      this.#isSynced = true;
      this.#changed();
    });
  }

  async hold(pod: HeldPod, addresses: readonly string[], signal: AbortSignal): Promise<void> {
    const { firstRulesMillis, timers } = this.#options;
    const objects = 'NetworkPolicies, Namespaces, Pods and sandboxes';
    const message = `the node does not know all ${objects} after ${firstRulesMillis / 1000} s; its log has the cause`;
    await inTime(this.#synced, firstRulesMillis, timers, message, signal);
    if (!this.#hold(pod, addresses))
      throw new Error(`the sandbox of the Pod ${pod.namespace}/${pod.name} has been detached from the network`);
    await this.#write();
  }

  async #left(): Promise<readonly LeftSandbox[]> {
    const { left, timers, log, signal } = this.#options;
    for (let failures = 0; !signal.aborted; ) {
      try {
        return await left();
      } catch (error) {
        if (signal.aborted) break;
        log.error('cannot list the sandboxes for NetworkPolicies', { error });
        await pause(timers, backOffMillis(++failures, RETRY_BASE_MILLIS, RETRY_MAX_MILLIS), signal);
      }
    }
    return [];
  }

  /** Adds the addresses to the Pod and returns true. If one is not attached any more, changes nothing and returns false. */
  #hold(pod: HeldPod, addresses: readonly string[]): boolean {
    if (!addresses.every((address) => this.#options.sandboxes.isAttached(address))) return false;
    const { uid } = pod;
    const added = addresses.filter((address) => this.#holders.get(address) !== uid);
    for (const address of added) {
      this.#release(address);
      this.#holders.set(address, uid);
    }
    const entry = this.#entryOf(uid);
    entry.held = pod;
    entry.addresses = [...entry.addresses, ...added];
    // The section gives an address to the Pod that was added last, because older Pods may still report the address.
    if (added.length > 0) this.#section.setPod(uid, undefined);
    this.#update(uid, entry);
    return true;
  }

  #entryOf(uid: string): Entry {
    const entry = this.#entries.get(uid) ?? { isStored: false, addresses: [] };
    this.#entries.set(uid, entry);
    return entry;
  }

  #takeIn(pod: Pod, exists: boolean): void {
    const uid = mirroredUid(pod) ?? uidOf(pod);
    const entry = this.#entryOf(uid);
    entry.stored = pod;
    entry.isStored = exists;
    if (this.#update(uid, entry)) this.#changed();
  }

  #release(address: string): boolean {
    const uid = this.#holders.get(address);
    const entry = uid === undefined ? undefined : this.#entries.get(uid);
    if (uid === undefined || entry === undefined) return false;
    this.#holders.delete(address);
    entry.addresses = entry.addresses.filter((each) => each !== address);
    return this.#update(uid, entry);
  }

  #detached(addresses: readonly string[]): void {
    let hasChanged = false;
    for (const address of addresses) if (this.#release(address)) hasChanged = true;
    if (hasChanged) this.#changed();
  }

  #update(uid: string, { stored, isStored, held, addresses }: Entry): boolean {
    if (!isStored && addresses.length === 0) {
      this.#entries.delete(uid);
      return this.#section.setPod(uid, undefined);
    }
    if (stored === undefined)
      return this.#section.setPod(uid, held && partOf(held, held.labels, addresses, held.ports));
    const reported = reportedAddresses(stored).filter((each) => (this.#holders.get(each) ?? uid) === uid);
    const { metadata } = stored;
    const part = partOf(metadata, metadata.labels, addresses.length > 0 ? addresses : reported, namedPorts(stored));
    return this.#section.setPod(uid, part.addresses.length > 0 ? part : undefined);
  }

  #changed(): void {
    this.#hasChanged = true;
    if (this.#isSynced && !this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    const { timers, log, signal } = this.#options;
    this.#isRunning = true;
    let failures = 0;
    while (this.#hasChanged && !signal.aborted) {
      // Changes that arrive in the same turn of the event loop are part of one transaction.
      await Promise.resolve();
      this.#hasChanged = false;
      try {
        await this.#write();
        failures = 0;
      } catch (error) {
        if (signal.aborted) break;
        log.error('cannot write the rules for NetworkPolicies', { error });
        this.#hasChanged = true;
        await pause(timers, backOffMillis(++failures, RETRY_BASE_MILLIS, RETRY_MAX_MILLIS), signal);
      }
    }
    this.#isRunning = false;
  }
}

function each<T extends KubeObject>(act: (object: T, exists: boolean) => void): InformerHandlers<T> {
  const exists = (object: T): void => act(object, true);
  return { added: exists, updated: exists, deleted: (object) => act(object, false) };
}

/** Returns the addresses in the status of the Pod; none if the Pod uses the addresses of the node, or has ended. */
function reportedAddresses({ spec, status }: Pod): string[] {
  if (spec?.hostNetwork === true || status?.phase === 'Succeeded' || status?.phase === 'Failed') return [];
  return (status?.podIPs ?? []).flatMap(({ ip }) => canonicalIp(ip) ?? []);
}

const partOf = (
  { namespace = '' }: { namespace?: string },
  labels: PolicyPod['labels'] = {},
  addresses: readonly string[],
  ports: readonly ContainerPort[],
): PolicyPod => ({
  namespace,
  labels,
  addresses,
  ports: ports.map(({ name = '', protocol = 'TCP', containerPort }) => ({ name, protocol, port: containerPort })),
});

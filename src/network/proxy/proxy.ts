/**
 * The service proxy: makes the addresses and ports of Services lead to their endpoints.
 *
 * Boundary: reads Services, EndpointSlices, ServiceCIDRs and its Node, never Pods; writes the section `services` of the nftables table,
 * deletes entries of connection tracking, answers health checks, and writes Events. services-section.ts decides what the rules are.
 * Invariants:
 *  1. The first section contains everything that the informers have listed: the rules that an earlier engine has left stay until then.
 *  2. Changes that arrive while rules are written are part of the next transaction. There are no timers except after a failure.
 *  3. The rules remain when the engine ends.
 *  4. A Service whose rules nft(8) rejects has no rules, and gets an Event; the other Services get their rules.
 */
import { isDeepStrictEqual } from 'node:util';
import type { EndpointSlice, Node, Service, ServiceCIDR } from '../../api/generated/types.ts';
import { ENDPOINT_SLICES, NODES, SERVICE_CIDRS, SERVICES } from '../../api/resources.ts';
import { backOffMillis } from '../../client/back-off.ts';
import type { Client } from '../../client/client.ts';
import { createEventRecorder } from '../../client/events.ts';
import type { Informer } from '../../client/informer.ts';
import type { InformerHandlers } from '../../client/local-copy.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { pause } from '../../platform/pause.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { runInTurns, workInTurns } from '../../platform/work-in-turns.ts';
import { followRejections } from '../nftables/follow-rejections.ts';
import type { Rejections } from '../nftables/section.ts';
import type { NftTable } from '../nftables/table.ts';
import type { ServiceRoutes } from '../pod-network/service-routes.ts';
import { serviceOfSlice } from './endpoints.ts';
import { FlowExaminer } from './flow-examiner.ts';
import { createHealthChecks, type HealthChecks } from './health-checks.ts';
import { PortConflicts } from './port-conflicts.ts';
import { MAX_FRONTENDS, MAX_PAIRS } from './rule-limits.ts';
import type { NodeFacts } from './service-rules.ts';
import { keyOfPart, ServicesSection } from './services-section.ts';

export interface ProxyOptions extends Omit<NodeFacts, 'zone'> {
  client: Client;
  informers: SharedInformers;
  table: NftTable;
  /** Gets the ranges of cluster IPs whenever the ServiceCIDRs have changed. */
  routes?: Pick<ServiceRoutes, 'set'>;
  timers: Timers;
  log: Log;
  /** The network namespace of ip-netns(8) whose connections are tracked; by default, the namespace of the process. */
  namespace?: string;
  /** Ends the proxy; the rules remain. */
  signal: AbortSignal;
}

export interface RunningProxy {
  /** Resolves when the first attempt to write the rules has succeeded or failed. A failed attempt is repeated. */
  readonly attempted: Promise<void>;
  /** Resolves when the rules are written for the first time, with all Services that exist. Never resolves if no attempt succeeds. */
  readonly written: Promise<void>;
}

export function startProxy(options: ProxyOptions): RunningProxy {
  return new ServiceProxy(options);
}

const ZONE = 'topology.kubernetes.io/zone';
const RETRY_BASE_MILLIS = 1000;
const RETRY_MAX_MILLIS = 60_000;

const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;

class ServiceProxy implements RunningProxy {
  readonly #options: ProxyOptions;
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #nodes: Informer<Node>;
  readonly #cidrs: Informer<ServiceCIDR>;
  readonly #events: ReturnType<typeof createEventRecorder>;
  readonly #checks: HealthChecks;
  readonly #conflicts: PortConflicts;
  readonly #flows: FlowExaminer;
  readonly #takeRejections: (rejections: Rejections) => void;
  #section: ServicesSection;
  #zone: string | undefined;
  /** If the zone has changed, the next transaction takes in all Services. */
  #hasMoved = false;
  #serviceCidrs: readonly string[];
  #hasOtherRanges = false;
  #changed = new Set<string>();
  #isSynced = false;
  #isRunning = false;
  readonly #written = Promise.withResolvers<void>();
  readonly written = this.#written.promise;
  readonly attempted: Promise<void>;

  constructor(options: ProxyOptions) {
    this.#options = options;
    const { informers, signal, nodeName, client, timers, log } = options;
    this.#serviceCidrs = options.serviceCidrs;
    this.#section = this.#newSection();
    this.#events = createEventRecorder(client, { component: 'kube-proxy', host: nodeName, timers, log, signal });
    this.#checks = createHealthChecks((service, port, error) => {
      const message = `node ${nodeName} failed to start healthcheck "${keyOf(service)}" on port ${port}: ${error.message}`;
      log.warn('cannot open the port of a health check', { service: keyOf(service), port, error });
      this.#events.event(service, 'Warning', 'FailedToStartServiceHealthcheck', message);
    });
    this.#conflicts = new PortConflicts({
      ...options,
      table: options.table.name,
      slicesOf: (key) => this.#slices.by(serviceOfSlice, key),
      found: (service, message) => this.#events.event(service, 'Warning', 'PortConflict', message),
    });
    this.#flows = new FlowExaminer(options);
    this.#takeRejections = followRejections({
      timers,
      signal,
      rejected: (part, error) => this.#reject(keyOfPart(part), error),
      retry: (parts) => this.#change(parts.map(keyOfPart)),
    });
    const each = <T extends KubeObject>(act: (object: T) => void): InformerHandlers<T> => ({
      added: act,
      updated: (object, old) => {
        act(old);
        act(object);
      },
      deleted: act,
    });
    const changed = (key: string): void => this.#change([key]);
    this.#services = informers.follow<Service>(
      SERVICES,
      { signal },
      each((service) => changed(keyOf(service))),
    );
    this.#slices = informers.follow<EndpointSlice>(
      ENDPOINT_SLICES,
      { signal },
      each((slice) => serviceOfSlice(slice).forEach(changed)),
    );
    this.#nodes = informers.follow<Node>(
      NODES,
      { fieldSelector: `metadata.name=${nodeName}`, signal },
      { added: (node) => this.#place(node), updated: (node) => this.#place(node) },
    );
    const otherRanges = (): void => {
      this.#hasOtherRanges = true;
      this.#change([]);
    };
    this.#cidrs = informers.follow<ServiceCIDR>(
      SERVICE_CIDRS,
      { signal },
      {
        added: otherRanges,
        updated: ({ spec }, old) => {
          if (!isDeepStrictEqual(spec, old.spec)) otherRanges();
        },
        deleted: otherRanges,
      },
    );
    this.attempted = this.#start();
  }

  async #start(): Promise<void> {
    await Promise.all([this.#services.synced, this.#slices.synced, this.#nodes.synced, this.#cidrs.synced]);
    this.#isSynced = true;
    this.#options.signal.addEventListener('abort', () => this.#checks.close());
    const first = Promise.withResolvers<void>();
    void this.#run(first.resolve);
    await first.promise;
  }

  #newSection(): ServicesSection {
    return new ServicesSection({ ...this.#options, serviceCidrs: this.#serviceCidrs, zone: this.#zone });
  }

  #place({ metadata }: Node): void {
    const zone = metadata.labels?.[ZONE];
    if (zone === this.#zone) return;
    this.#zone = zone;
    this.#hasMoved = true;
    this.#change(this.#services.list().map(keyOf));
  }

  #change(keys: Iterable<string>): void {
    for (const key of keys) this.#changed.add(key);
    if (this.#isSynced && !this.#isRunning) void this.#run();
  }

  /** Writes the changes until there are none. `attempted` is called after the first attempt. */
  async #run(attempted: () => void = () => undefined): Promise<void> {
    const { signal, timers, log, table } = this.#options;
    this.#isRunning = true;
    let failures = 0;
    const written = new Set<string>();
    do {
      for (const key of await this.#takeIn()) written.add(key);
      try {
        this.#takeRejections(await table.set('services', this.#section.section()));
        this.#written.resolve();
        failures = 0;
        this.#checks.setHealthy(true);
        void this.#examinePorts();
        void this.#flows.written(written, (key) => this.#section.rulesOf(key)?.udp ?? []);
        written.clear();
      } catch (error) {
        if (signal.aborted) break;
        this.#checks.setHealthy(false);
        log.error('cannot write the rules for Services', { error });
        attempted();
        await pause(timers, backOffMillis(++failures, RETRY_BASE_MILLIS, RETRY_MAX_MILLIS), signal);
      }
      attempted();
    } while (!signal.aborted && (this.#changed.size > 0 || this.#hasOtherRanges || failures > 0));
    attempted();
    this.#isRunning = false;
  }

  /**
   * Takes in the Services that have changed until now, in turns with other work, and resolves with their keys. Later changes wait for the
   * next transaction: otherwise constant changes would delay all rules without end.
   */
  async #takeIn(): Promise<Set<string>> {
    if (this.#hasMoved) {
      this.#hasMoved = false;
      this.#section = this.#newSection();
    }
    if (this.#hasOtherRanges) {
      this.#hasOtherRanges = false;
      // The ranges of the command line also count, because the API server may not have written their ServiceCIDR yet.
      const added = this.#cidrs.list().flatMap(({ spec }) => spec?.cidrs ?? []);
      this.#serviceCidrs = [...this.#options.serviceCidrs, ...added];
      this.#section.setServiceCidrs(this.#serviceCidrs);
      void this.#options.routes?.set([...new Set(this.#serviceCidrs)]);
    }
    const taken = new Set<string>();
    const betweenSteps = workInTurns();
    let keys = this.#changed;
    this.#changed = new Set();
    while (keys.size > 0) {
      // A Service that gets an address and the one that loses it must be part of the same transaction.
      const rivals = new Set<string>();
      for (const key of keys) {
        const service = this.#get(key);
        const slices = [...this.#slices.by(serviceOfSlice, key)];
        const wasCut = this.#section.rulesOf(key)?.isCut === true;
        const affected = await runInTurns(this.#section.steps(key, service, slices), betweenSteps);
        for (const rival of affected) rivals.add(rival);
        if (service !== undefined && !wasCut && this.#section.rulesOf(key)?.isCut === true) this.#warn(service);
        const { localEndpoints = 0, machinePorts = [] } = this.#section.rulesOf(key) ?? {};
        this.#checks.update(key, service, localEndpoints);
        this.#conflicts.update(key, service, machinePorts);
        taken.add(key);
        await betweenSteps();
      }
      keys = rivals;
    }
    return taken;
  }

  #get(key: string): Service | undefined {
    const [namespace, name = ''] = key.split('/');
    return this.#services.get(namespace, name);
  }

  #reject(key: string, error: Error): void {
    const { log, nodeName } = this.#options;
    log.error('leaving out the rules for a Service that nft rejects', { service: key, error });
    const message =
      `node ${nodeName} has no rules for this Service, because nft rejects them; other Services are not affected; ` +
      `change the Service or its endpoints: ${error.message.split('\n', 1)[0]}`;
    const service = this.#get(key);
    if (service !== undefined) this.#events.event(service, 'Warning', 'RulesRejected', message);
  }

  #warn(service: Service): void {
    const message =
      `the Service is too large for node ${this.#options.nodeName}: it gets at most ${MAX_FRONTENDS} addresses and ports, and ` +
      `${MAX_PAIRS} pairs of these with endpoints; divide it into several Services`;
    this.#events.event(service, 'Warning', 'ServiceTooLarge', message);
  }

  async #examinePorts(): Promise<void> {
    const { signal, log } = this.#options;
    await this.#conflicts.examine().catch((error: unknown) => {
      if (!signal.aborted) log.warn('cannot find out what else uses the ports of Services', { error });
    });
  }
}

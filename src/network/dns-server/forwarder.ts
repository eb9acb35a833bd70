/**
 * Forwards queries for names outside the cluster to the machine's name servers, and reuses their responses.
 *
 * Invariants: a query is answered or fails within `deadlineMillis`. Clients that ask the same question over the same transport share one
 * request. The number of waiting queries and the memory for responses are bounded.
 */
import { AnswerCache, type CacheLimits } from './answer-cache.ts';
import { type ForeignResponse, forwardedQuery, readForeign } from './foreign-response.ts';
import { FLAG, type Query, RCODE } from './message.ts';
import type { MachineServers } from './resolv-conf.ts';
import type { Transport } from './response.ts';
import { type Ask, askTcp, askUdp } from './upstream.ts';

export interface ForwarderLimits {
  serverMillis: number;
  /** The time for all attempts. Resolvers give up after 5 s: resolv.conf(5). */
  deadlineMillis: number;
  /** A server that did not respond is asked last for this time. */
  avoidMillis: number;
  /** The maximum number of questions that are being forwarded. Source: kubeadm's Corefile (`max_concurrent 1000`). */
  questions: number;
  /** The maximum numbers of waiting queries: of all clients, and of one client. */
  waiting: number;
  waitingOfClient: number;
  cache?: CacheLimits;
}

export const FORWARDER_LIMITS: ForwarderLimits = {
  serverMillis: 1500,
  deadlineMillis: 4500,
  avoidMillis: 10_000,
  questions: 1000,
  waiting: 4000,
  waitingOfClient: 500,
};

export interface Answered {
  response: ForeignResponse;
  ageSeconds: number;
}

export interface Forwarder {
  /** Returns the stored response; undefined if none is stored, or if its lifetime is over. */
  stored(query: Query): Answered | undefined;
  /**
   * Asks the machine's name servers. Rejects if the machine has no name server, if none responds in time, or if too many queries wait.
   * `client`: the address of the client.
   */
  ask(query: Query, transport: Transport, client: string): Promise<Answered>;
  /** Resolves when the queries that wait now have been answered or have failed. */
  idle(): Promise<void>;
}

export interface ForwarderOptions {
  servers: MachineServers;
  port?: number;
  limits?: ForwarderLimits;
  /** Must be monotonic. */
  nowMillis?: () => number;
}

const ASK: Record<Transport, Ask> = { udp: askUdp, tcp: askTcp };

export function createForwarder({
  servers,
  port = 53,
  limits = FORWARDER_LIMITS,
  nowMillis = () => performance.now(),
}: ForwarderOptions): Forwarder {
  const cache = new AnswerCache(limits.cache);
  const flights = new Map<string, Promise<ForeignResponse>>();
  const waiting = new Waiting(limits);
  const upstreams = new Upstreams(servers, port, limits, nowMillis);

  function shared(key: string, query: Query, transport: Transport): Promise<ForeignResponse> {
    const flightKey = `${transport}${key}`;
    const known = flights.get(flightKey);
    if (known !== undefined) return known;
    if (flights.size >= limits.questions) return Promise.reject(new Error('too many questions are being forwarded'));
    const flight = upstreams
      .ask(query, transport)
      .then((response) => {
        cache.put(key, response, nowMillis());
        return response;
      })
      .finally(() => flights.delete(flightKey));
    flights.set(flightKey, flight);
    return flight;
  }

  return {
    stored: (query) => cache.get(keyOf(query), nowMillis()),
    async ask(query, transport, client) {
      const leave = waiting.enter(client);
      try {
        return { response: await shared(keyOf(query), query, transport), ageSeconds: 0 };
      } finally {
        leave();
      }
    },
    idle: async () => void (await Promise.allSettled(flights.values())),
  };
}

class Waiting {
  readonly #limits: ForwarderLimits;
  readonly #ofClient = new Map<string, number>();
  #total = 0;

  constructor(limits: ForwarderLimits) {
    this.#limits = limits;
  }

  /** Returns a function that must be called once, when the query no longer waits. Throws if too many queries wait. */
  enter(client: string): () => void {
    const before = this.#ofClient.get(client) ?? 0;
    if (this.#total >= this.#limits.waiting || before >= this.#limits.waitingOfClient)
      throw new Error('too many queries wait for a name server');
    this.#total += 1;
    this.#ofClient.set(client, before + 1);
    return () => {
      this.#total -= 1;
      const left = (this.#ofClient.get(client) ?? 1) - 1;
      if (left === 0) this.#ofClient.delete(client);
      else this.#ofClient.set(client, left);
    };
  }
}

class Upstreams {
  readonly #servers: MachineServers;
  readonly #port: number;
  readonly #limits: ForwarderLimits;
  readonly #nowMillis: () => number;
  /** When a server last failed to respond, by its address. */
  readonly #failedAt = new Map<string, number>();

  constructor(servers: MachineServers, port: number, limits: ForwarderLimits, nowMillis: () => number) {
    this.#servers = servers;
    this.#port = port;
    this.#limits = limits;
    this.#nowMillis = nowMillis;
  }

  /**
   * Resolves with the first response that is not a failure, or else with the first failure. Rejects if there is no server, or if no server
   * responds in time.
   */
  async ask(query: Query, transport: Transport): Promise<ForeignResponse> {
    const deadline = this.#nowMillis() + this.#limits.deadlineMillis;
    let failure = new Error('the machine has no name server');
    let failed: ForeignResponse | undefined;
    const once = this.#inOrder();
    // A packet may have been lost, so each server is asked twice.
    for (const address of [...once, ...once]) {
      const left = deadline - this.#nowMillis();
      if (left <= 0) break;
      try {
        const response = await this.#askOne(address, query, transport, Math.min(this.#limits.serverMillis, left));
        this.#failedAt.delete(address);
        if (!isFailure(response)) return response;
        failed ??= response;
        // A single server that reports a failure would report it again.
        if (once.length === 1) break;
      } catch (error) {
        this.#failedAt.set(address, this.#nowMillis());
        failure = error as Error;
      }
    }
    if (failed !== undefined) return failed;
    throw failure;
  }

  async #askOne(address: string, query: Query, transport: Transport, millis: number): Promise<ForeignResponse> {
    let response: ForeignResponse | undefined;
    const accepts = (received: Buffer): boolean => {
      response = readForeign(received, query);
      return response !== undefined;
    };
    const server = { address, port: this.#port };
    await inTime(millis, address, (signal) => ASK[transport](forwardedQuery(query), server, accepts, signal));
    return response as unknown as ForeignResponse;
  }

  /** Servers that recently did not respond come last. */
  #inOrder(): string[] {
    const current = this.#servers.current();
    for (const server of this.#failedAt.keys()) if (!current.includes(server)) this.#failedAt.delete(server);
    const isAvoided = (server: string): boolean =>
      this.#nowMillis() - (this.#failedAt.get(server) ?? Number.NEGATIVE_INFINITY) < this.#limits.avoidMillis;
    return [...current.filter((server) => !isAvoided(server)), ...current.filter(isAvoided)];
  }
}

const isFailure = ({ rcode }: ForeignResponse): boolean => rcode !== RCODE.noError && rcode !== RCODE.nameError;

/** Queries that may get the same response have the same key. */
const keyOf = ({ key, type, class: ofClass, flags, edns }: Query): string =>
  `${type} ${ofClass} ${flags & (FLAG.recursionDesired | FLAG.checkingDisabled)} ${edns?.wantsSignatures === true} ${key}`;

async function inTime<T>(millis: number, server: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`${server} did not respond`)), millis);
  try {
    return await work(limit.signal);
  } finally {
    clearTimeout(timer);
  }
}

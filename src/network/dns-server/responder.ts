/**
 * Answers one DNS message: from the zone if the question is for a cluster name, else from the machine's name servers.
 *
 * Invariant: whatever the message contains, the responder neither throws nor rejects because of it.
 */
import { aliasesAndAddresses, negativeAuthorities, relay } from './foreign-response.ts';
import type { Answered, Forwarder } from './forwarder.ts';
import { CLASS_IN, parseQuery, type Query, RCODE, TYPE } from './message.ts';
import { errorResponse, type Response, respond, type Transport } from './response.ts';
import { answerQuestion, type MostRecords, startOfAuthority, type ZoneRecord } from './zone.ts';
import type { ZoneData } from './zone-data.ts';

/**
 * More records do not fit into a message: an address takes 16 bytes, and an SRV record, whose target is not compressed, at least 31, as for
 * a.b.c.svc.d.
 */
const MOST_RECORDS: Record<Transport, MostRecords> = {
  udp: { addresses: 100, services: 50 },
  tcp: { addresses: 4096, services: 2200 },
};
const MAX_ALIASES = 8;
const MAX_ALIAS_RECORDS = 64;

export interface ResponderOptions {
  data: () => ZoneData;
  forwarder: Forwarder;
  /** In lower case, such as cluster.local. */
  domain: string;
}

/** Answers one DNS message. The result is undefined if the message gets no response. `client`: the address of the client. */
export type Responder = (
  message: Buffer,
  transport: Transport,
  client: string,
) => Promise<Buffer | undefined> | Buffer | undefined;

export function createResponder(options: ResponderOptions): Responder {
  const answers = new Answers(options);
  return (message, transport, client) => {
    const parsed = parseQuery(message);
    if (parsed.kind === 'ignored') return undefined;
    if (parsed.kind === 'error') return errorResponse(message, parsed.rcode);
    const { query } = parsed;
    const refusal = refusalOf(query);
    if (refusal !== undefined) return failure(query, refusal, transport);
    const found = answers.local(query, transport);
    if (found === undefined) return answers.foreign(query, transport, client);
    if (!('alias' in found)) return respond(query, found, transport);
    return answers.followed(query, found, transport, client).then((response) => respond(query, response, transport));
  };
}

interface Alias {
  alias: ZoneRecord[];
  target: string;
}

class Answers {
  readonly #options: ResponderOptions;
  #turn = 0;

  constructor(options: ResponderOptions) {
    this.#options = options;
  }

  /** Returns the answer of the zone, or the alias to follow; undefined if the question is for another zone. */
  local(query: Query, transport: Transport): Response | Alias | undefined {
    const { domain, data } = this.#options;
    const found = answerQuestion(query.labels, query.type, domain, data(), MOST_RECORDS[transport]);
    switch (found.kind) {
      case 'foreign':
        return undefined;
      case 'records':
        return this.#own(query, RCODE.noError, found.answers, found.additionals);
      case 'noData':
        return this.#own(query, RCODE.noError, []);
      case 'nxDomain':
        return this.#own(query, RCODE.nameError, []);
      case 'alias':
        return { alias: found.answers, target: found.target };
    }
  }

  #own(query: Query, rcode: number, answers: ZoneRecord[], additionals: ZoneRecord[] = []): Response {
    const { domain, data } = this.#options;
    return {
      rcode,
      isAuthoritative: true,
      answers: rotated(answers, query.type, this.#turn++),
      authorities: answers.length === 0 ? [startOfAuthority(query.labels, domain, data())] : [],
      additionals,
    };
  }

  /** Returns the stored response of a name server, or else a promise of a new response. Failures of the forwarder become serverFailure. */
  foreign(query: Query, transport: Transport, client: string): Buffer | Promise<Buffer> {
    const { forwarder } = this.#options;
    const reply = ({ response, ageSeconds }: Answered): Buffer => relay(response, query, ageSeconds, transport);
    const stored = forwarder.stored(query);
    if (stored !== undefined) return reply(stored);
    return forwarder.ask(query, transport, client).then(reply, () => failure(query, RCODE.serverFailure, transport));
  }

  /**
   * Resolves with the alias, the records of its target and the code of the last name (RFC 6604). If the target cannot be resolved, the
   * response contains only the aliases. The SOA record of the target's zone allows resolvers to cache a negative answer (RFC 2308).
   */
  async followed(query: Query, first: Alias, transport: Transport, client: string): Promise<Response> {
    const answers = [...first.alias];
    let authorities: ZoneRecord[] = [];
    let target = first.target;
    let rcode: number = RCODE.noError;
    let isTruncated = false;
    for (let depth = 0; depth < MAX_ALIASES && (query.type === TYPE.A || query.type === TYPE.AAAA); depth++) {
      const next = targetQuery(query, target);
      const found = next === undefined ? undefined : this.local(next, transport);
      if (found !== undefined && 'alias' in found) {
        answers.push(...found.alias.map((record) => ({ ...record, name: target })));
        target = found.target;
        continue;
      }
      if (found !== undefined) {
        answers.push(...found.answers.map((record) => ({ ...record, name: target })));
        ({ rcode, authorities } = found);
      } else if (next !== undefined) {
        const foreign = await this.#foreignRecords(next, transport, client);
        answers.push(...foreign.records);
        ({ rcode, isTruncated, authorities } = foreign);
      }
      break;
    }
    return { rcode, isAuthoritative: true, isTruncated, answers, authorities, additionals: [] };
  }

  async #foreignRecords(
    query: Query,
    transport: Transport,
    client: string,
  ): Promise<Pick<Response, 'rcode' | 'authorities'> & { records: ZoneRecord[]; isTruncated: boolean }> {
    const { forwarder } = this.#options;
    try {
      const { response } = forwarder.stored(query) ?? (await forwarder.ask(query, transport, client));
      const { rcode, isTruncated } = response;
      const records = aliasesAndAddresses(response, query, MAX_ALIAS_RECORDS);
      const hasAddress = records.some(({ type }) => type !== 'CNAME');
      return { records, rcode, isTruncated, authorities: hasAddress ? [] : negativeAuthorities(response, query) };
    } catch {
      return { records: [], rcode: RCODE.serverFailure, isTruncated: false, authorities: [] };
    }
  }
}

function refusalOf(query: Query): number | undefined {
  if (query.edns !== undefined && query.edns.version > 0) return RCODE.badVersion;
  if (query.class !== CLASS_IN || query.type === TYPE.AXFR || query.type === TYPE.IXFR) return RCODE.refused;
  return query.type === TYPE.OPT ? RCODE.formatError : undefined;
}

const failure = (query: Query, rcode: number, transport: Transport): Buffer =>
  respond(query, { rcode, isAuthoritative: false, answers: [], authorities: [], additionals: [] }, transport);

/** Returns the query for the name `target` instead of the name in `query`; undefined if `target` is not a valid name. */
function targetQuery(query: Query, target: string): Query | undefined {
  const labels = target.toLowerCase().replace(/\.$/, '').split('.');
  if (target.length > 253 || labels.some((label) => label === '' || label.length > 63)) return undefined;
  const bytes = labels.flatMap((label) => [label.length, ...Buffer.from(label, 'latin1')]);
  const question = Buffer.from([...bytes, 0, query.type >> 8, query.type & 0xff, 0, CLASS_IN]);
  const key = labels.map((label) => String.fromCharCode(label.length) + label).join('');
  return { ...query, labels, key, question };
}

/** Rotates addresses, because many clients use only the first one. */
function rotated(answers: ZoneRecord[], type: number, turn: number): ZoneRecord[] {
  if (answers.length < 2 || (type !== TYPE.A && type !== TYPE.AAAA)) return answers;
  const first = turn % answers.length;
  return [...answers.slice(first), ...answers.slice(0, first)];
}

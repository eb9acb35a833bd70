import { execFileSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Answer, decode, encode, type Packet, type SoaAnswer } from 'dns-packet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AnswerCache } from './answer-cache.ts';
import { opt, question } from './dns-client-fixture.ts';
import { readForeign, relay } from './foreign-response.ts';
import { createForwarder, FORWARDER_LIMITS, type Forwarder, type ForwarderLimits } from './forwarder.ts';
import { parseQuery, type Query } from './message.ts';
import { type NameServer, startNameServer } from './name-server-fixture.ts';
import { machineServers } from './resolv-conf.ts';
import { createResponder } from './responder.ts';
import { StoredZone } from './zone-data.ts';

let folder: string;
let now: number;
const servers: NameServer[] = [];
beforeEach(() => {
  now = 0;
  folder = mkdtempSync(join(tmpdir(), 'lifepod-dns-'));
});
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  rmSync(folder, { recursive: true });
});

const start = async (...args: Parameters<typeof startNameServer>): Promise<NameServer> => {
  const server = await startNameServer(...args);
  servers.push(server);
  return server;
};
const conf = (...addresses: string[]): string => {
  writeFileSync(join(folder, 'resolv.conf'), addresses.map((address) => `nameserver ${address}\n`).join(''));
  return join(folder, 'resolv.conf');
};
const forwarderTo = (port: number, addresses: string[], limits: Partial<ForwarderLimits> = {}): Forwarder =>
  createForwarder({
    servers: machineServers(conf(...addresses), undefined, []),
    port,
    limits: { ...FORWARDER_LIMITS, ...limits },
    nowMillis: () => now,
  });
const parse = (message: Buffer): Query => {
  const result = parseQuery(message);
  if (result.kind !== 'query') throw new Error(result.kind);
  return result.query;
};
type Decoded = Packet & { rcode: string; flag_tc: boolean };
const responder = (forwarder: Forwarder) => {
  const answer = createResponder({ data: () => new StoredZone(1), forwarder, domain: 'cluster.local' });
  return async (message: Buffer, transport: 'udp' | 'tcp' = 'udp') =>
    decode((await answer(message, transport, '10.0.0.1')) as Buffer) as unknown as Decoded;
};
const a = (ttl: number, data = '192.0.2.1'): Answer => ({ name: 'example.com', type: 'A', ttl, data });
const soa = (ttl: number, minimum: number): SoaAnswer => ({
  name: 'com',
  type: 'SOA',
  ttl,
  data: { mname: 'a', rname: 'b', serial: 1, refresh: 1, retry: 1, expire: 1, minimum },
});

describe('createForwarder', () => {
  it('a response is reused until its time to live is over, with the remaining time', async () => {
    const server = await start(() => ({ answers: [a(20), { ...a(10), name: 'other.com' } as Answer] }));
    const ask = responder(forwarderTo(server.port, ['127.0.0.1']));
    expect((await ask(question('example.com'))).answers).toMatchObject([{ ttl: 20 }, { ttl: 10 }]);
    now = 9_999;
    const later = await ask(question('EXAMPLE.com', 'A', [opt(1232)]));
    expect(later).toMatchObject({
      questions: [{ name: 'EXAMPLE.com' }],
      answers: [{ ttl: 11 }, { ttl: 1 }],
      additionals: [{ type: 'OPT' }],
    });
    expect(server.asked).toEqual(['udp A example.com']);
    now = 10_000;
    await ask(question('example.com'));
    expect(server.asked).toHaveLength(2);
  });

  it.each([
    ['NXDOMAIN with an SOA record', { flags: 0x183, authorities: [soa(20, 5)] }, 5],
    ['NXDOMAIN with a short SOA record', { flags: 0x183, authorities: [soa(3, 60)] }, 3],
    ['an answer without records of the type', { answers: [], authorities: [soa(60, 7)] }, 7],
    ['NXDOMAIN without an SOA record', { flags: 0x183 }, 0],
    ['a time to live of 0', { answers: [a(0)] }, 0],
    ['a long time to live', { answers: [a(86_400)] }, 30],
    ['SERVFAIL', { flags: 0x182 }, 1],
    ['a truncated response', { flags: 0x380, answers: [a(20)] }, 0],
  ])('%s is reused for the right time', async (_, reply, seconds) => {
    const server = await start(() => reply as Partial<Packet>);
    const ask = responder(forwarderTo(server.port, ['127.0.0.1']));
    await ask(question('example.com'));
    const first = server.asked.length;
    if (seconds > 0) {
      now = seconds * 1000 - 1;
      await ask(question('example.com'));
      expect(server.asked).toHaveLength(first);
    }
    now = seconds * 1000;
    await ask(question('example.com'));
    expect(server.asked.length).toBeGreaterThan(first);
  });

  it('the next server is asked if one refuses, fails, or does not respond, which is then asked last', async () => {
    const third = await start(() => ({ answers: [a(0)] }), '127.0.0.3');
    // No server listens on 127.0.0.1, and the server on 127.0.0.2 never responds.
    const silent = await start(() => undefined, '127.0.0.2', third.port);
    const ask = responder(forwarderTo(third.port, ['127.0.0.1', '127.0.0.2', '127.0.0.3'], { serverMillis: 700 }));
    for (let i = 0; i < 3; i++) expect((await ask(question('example.com'))).answers).toHaveLength(1);
    expect(silent.asked).toHaveLength(1);
    now = FORWARDER_LIMITS.avoidMillis + 1;
    await ask(question('example.com'));
    expect(silent.asked).toHaveLength(2);
  });

  it('SERVFAIL of one server is returned only if no other server responds', async () => {
    const first = await start(() => ({ flags: 0x182 }));
    const ask = responder(forwarderTo(first.port, ['127.0.0.1', '127.0.0.2']));
    expect((await ask(question('example.com'))).rcode).toBe('SERVFAIL');
    now = 60_000;
    await start(() => ({ answers: [a(10)] }), '127.0.0.2', first.port);
    expect((await ask(question('example.com'))).rcode).toBe('NOERROR');
  });

  it('a query fails after its deadline', async () => {
    const server = await start(() => undefined);
    const limits = { ...FORWARDER_LIMITS, serverMillis: 20, deadlineMillis: 60 };
    const forwarder = createForwarder({
      servers: machineServers(conf('127.0.0.1'), undefined, []),
      port: server.port,
      limits,
    });
    expect((await responder(forwarder)(question('example.com'))).rcode).toBe('SERVFAIL');
    expect(server.asked.length).toBeGreaterThanOrEqual(1);
  });

  it('the same question is asked once at a time', async () => {
    const server = await start(() => ({ answers: [a(0)] }));
    const ask = responder(forwarderTo(server.port, ['127.0.0.1']));
    const all = await Promise.all(Array.from({ length: 50 }, () => ask(question('example.com'))));
    expect(all.every(({ answers }) => answers?.length === 1)).toBe(true);
    expect(server.asked).toEqual(['udp A example.com']);
  });

  it('a client whose queries wait for a name server does not keep other clients from waiting', async () => {
    const server = await start(() => undefined);
    const forwarder = forwarderTo(server.port, ['127.0.0.1'], { serverMillis: 200, waitingOfClient: 2, waiting: 3 });
    const ask = (client: string, name: string) =>
      forwarder.ask(parse(question(name)), 'udp', client).catch((error: Error) => error.message);
    const results = ['a', 'b', 'c'].map((name) => ask('10.0.0.1', name));
    results.push(ask('10.0.0.2', 'd'), ask('10.0.0.2', 'e'));
    const tooMany = 'too many queries wait for a name server';
    const expected = '127.0.0.1 did not respond';
    expect(await Promise.all(results)).toEqual([expected, expected, tooMany, expected, tooMany]);
  });

  it('responses to another question, malformed responses, and responses with another ID are ignored', async () => {
    const server = await start((query) =>
      query.questions?.[0]?.name === 'other.com'
        ? encode({ type: 'response', id: query.id, questions: [{ name: 'example.com', type: 'A' }], answers: [a(10)] })
        : encode({
            type: 'response',
            id: ((query.id ?? 0) + 1) % 65_536,
            questions: query.questions,
            answers: [a(10)],
          }),
    );
    const ask = responder(forwarderTo(server.port, ['127.0.0.1'], { serverMillis: 30 }));
    expect((await ask(question('example.com'))).rcode).toBe('SERVFAIL');
    expect((await ask(question('other.com'))).rcode).toBe('SERVFAIL');
  });

  it('a truncated response is passed on, and the client gets the whole one over TCP', async () => {
    const answers = Array.from({ length: 100 }, (_, i) => a(10, `192.0.2.${i}`));
    const server = await start((_, transport) => (transport === 'udp' ? { flags: 0x380 } : { answers }));
    const ask = responder(forwarderTo(server.port, ['127.0.0.1']));
    expect(await ask(question('example.com'))).toMatchObject({ flag_tc: true, answers: [] });
    expect((await ask(question('example.com'), 'tcp')).answers).toHaveLength(100);
    // The cache has the response, but it is too long for UDP.
    expect(await ask(question('example.com', 'A', [opt(4096)]))).toMatchObject({
      flag_tc: true,
      answers: [],
      additionals: [{ type: 'OPT' }],
    });
    expect(server.asked).toHaveLength(2);
  });

  it('the addresses of an alias outside the cluster are part of the answer', async () => {
    const zone = new StoredZone(1);
    const record = { namespace: 'ns1', name: 'out', ips: [], ports: [], externalName: 'example.com' };
    zone.put({ op: 'put', kind: 'service', record });
    const alias: Answer = { name: 'example.com', type: 'CNAME', ttl: 9, data: 'www.example.com' };
    const server = await start(() => ({ answers: [alias, { ...a(9), name: 'www.example.com' } as Answer] }));
    const forwarder = forwarderTo(server.port, ['127.0.0.1']);
    const answer = createResponder({ data: () => zone, forwarder, domain: 'cluster.local' });
    const response = await answer(question('out.ns1.svc.cluster.local'), 'udp', '10.0.0.1');
    expect(decode(response as Buffer).answers).toMatchObject([
      { name: 'out.ns1.svc.cluster.local', type: 'CNAME', data: 'example.com' },
      { name: 'example.com', type: 'CNAME', data: 'www.example.com' },
      { name: 'www.example.com', type: 'A', data: '192.0.2.1' },
    ]);
  });

  const askAlias = (server: NameServer) => {
    const zone = new StoredZone(1);
    const record = { namespace: 'ns1', name: 'out', ips: [], ports: [], externalName: 'example.com' };
    zone.put({ op: 'put', kind: 'service', record });
    const forwarder = forwarderTo(server.port, ['127.0.0.1']);
    const answer = createResponder({ data: () => zone, forwarder, domain: 'cluster.local' });
    return async (transport: 'udp' | 'tcp') =>
      decode(
        (await answer(question('out.ns1.svc.cluster.local'), transport, '10.0.0.1')) as Buffer,
      ) as unknown as Decoded;
  };

  it('a truncated answer for the target of an alias is passed on, and the client gets the whole one over TCP', async () => {
    const answers = Array.from({ length: 50 }, (_, i) => a(10, `192.0.2.${i}`));
    const server = await start((_, transport) =>
      transport === 'udp' ? { flags: 0x380, answers: answers.slice(0, 1) } : { answers },
    );
    const ask = askAlias(server);
    const cut = await ask('udp');
    expect(cut).toMatchObject({ rcode: 'NOERROR', flag_tc: true });
    expect(cut.answers).toHaveLength(2);
    const whole = await ask('tcp');
    expect(whole.flag_tc).toBe(false);
    expect(whole.answers).toHaveLength(51);
    expect(server.asked).toEqual(['udp A example.com', 'tcp A example.com']);
  });

  it.each([
    [3, 'NXDOMAIN'],
    [2, 'SERVFAIL'],
  ])('the code %i for the target of an alias is that of the answer, which has the alias', async (code, rcode) => {
    const ask = askAlias(await start(() => ({ flags: 0x180 | code })));
    expect(await ask('udp')).toMatchObject({
      rcode,
      answers: [{ type: 'CNAME', data: 'example.com' }],
      authorities: [],
    });
  });

  it.each([
    [3, 'NXDOMAIN'],
    [0, 'NOERROR'],
  ])(
    'the negative answer with the code %i for the target of an alias has the SOA record of its zone',
    async (code, rcode) => {
      const ask = askAlias(await start(() => ({ flags: 0x180 | code, authorities: [soa(60, 60)] })));
      const expected = {
        rcode,
        answers: [{ type: 'CNAME', data: 'example.com' }],
        authorities: [{ name: 'com', type: 'SOA', ttl: 5, data: { mname: 'a', rname: 'b', serial: 1, minimum: 5 } }],
      };
      expect(await ask('udp')).toMatchObject(expected);
      // The second response comes from the cache.
      expect(await ask('udp')).toMatchObject(expected);
    },
  );

  it('an answer for an alias that may not be cached has no SOA record, nor has one with addresses', async () => {
    const notCached = askAlias(await start(() => ({ flags: 0x183, authorities: [soa(60, 0)] })));
    expect(await notCached('udp')).toMatchObject({ rcode: 'NXDOMAIN', authorities: [] });
    const found = askAlias(await start(() => ({ answers: [a(60)], authorities: [soa(60, 60)] })));
    expect(await found('udp')).toMatchObject({ rcode: 'NOERROR', authorities: [] });
  });
});

describe('machineServers', () => {
  it('a file that changes, disappears and appears again is read again', () => {
    const file = conf('192.0.2.1', '2001:db8::1', 'not-an-address', '10.96.0.10');
    const found = machineServers(file, undefined, ['10.96.0.10']);
    expect(found.current()).toEqual(['192.0.2.1', '2001:db8::1']);
    conf('192.0.2.2');
    expect(found.current()).toEqual(['192.0.2.2']);
    renameSync(file, `${file}.moved`);
    expect(found.current()).toEqual([]);
    renameSync(`${file}.moved`, file);
    expect(found.current()).toEqual(['192.0.2.2']);
    rmSync(file);
    execFileSync('mkfifo', [file]);
    expect(found.current()).toEqual([]);
  });

  it('the servers behind the stub of systemd-resolved are used, if there are any', () => {
    const behind = join(folder, 'behind.conf');
    const found = machineServers(conf('127.0.0.53'), behind, []);
    expect(found.current()).toEqual(['127.0.0.53']);
    writeFileSync(behind, 'nameserver 192.0.2.9\n');
    expect(found.current()).toEqual(['192.0.2.9']);
    conf('192.0.2.1', '127.0.0.53');
    expect(found.current()).toEqual(['192.0.2.1', '127.0.0.53']);
  });
});

describe('AnswerCache', () => {
  const response = (bytes: number) => ({
    message: Buffer.alloc(bytes),
    rcode: 0,
    isTruncated: false,
    ttls: [],
    lifetimeSeconds: 10,
  });

  it('the entries that were used least recently are dropped if there are too many, or if they take too much memory', () => {
    const cache = new AnswerCache({ entries: 3, bytes: 5000, messageBytes: 2000 });
    for (const key of ['a', 'b', 'c']) cache.put(key, response(10), 0);
    cache.get('a', 0);
    cache.put('d', response(10), 0);
    expect(['a', 'b', 'c', 'd'].filter((key) => cache.get(key, 0) !== undefined)).toEqual(['a', 'c', 'd']);
    for (const key of ['e', 'f', 'g']) cache.put(key, response(1900), 0);
    expect(cache.size.bytes).toBeLessThanOrEqual(5000);
    cache.put('h', response(2001), 0);
    expect(cache.get('h', 0)).toBeUndefined();
  });

  it('replacing and expiring entries leaves nothing', () => {
    const cache = new AnswerCache();
    for (let i = 0; i < 5; i++) cache.put('a', response(100), 0);
    expect(cache.size.entries).toBe(1);
    expect(cache.get('a', 10_000)).toBeUndefined();
    expect(cache.size).toEqual({ entries: 0, bytes: 0 });
  });
});

describe('readForeign', () => {
  it('damaged responses are refused or relayed within the limits of the client', () => {
    const query = parse(question('example.com', 'A', [opt(1232)]));
    const whole = encode({
      type: 'response',
      questions: [{ name: 'example.com', type: 'A' }],
      answers: [a(10), a(20)],
      additionals: [opt(4096)],
    });
    for (let at = 0; at < whole.length; at++) {
      for (const byte of [0, 1, 63, 64, 0xc0, 0xff]) {
        const damaged = Buffer.from(whole);
        damaged[at] = byte;
        const found = readForeign(damaged, query);
        if (found !== undefined) expect(relay(found, query, 3, 'udp').length).toBeLessThanOrEqual(1232);
      }
      const cut = readForeign(whole.subarray(0, at), query);
      if (cut !== undefined) expect(at).toBe(12);
    }
  });
});

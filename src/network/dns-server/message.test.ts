import { decode, encode, type Packet } from 'dns-packet';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { opt, question } from './dns-client-fixture.ts';
import type { Forwarder } from './forwarder.ts';
import { parseQuery, type Query, readName, readRecords } from './message.ts';
import { createResponder } from './responder.ts';
import { StoredZone } from './zone-data.ts';

const parsed = (message: Buffer): Query => {
  const result = parseQuery(message);
  if (result.kind !== 'query') throw new Error(result.kind);
  return result.query;
};

/** dns-packet encodes labels of these characters unchanged. */
const label = fc.stringMatching(/^[a-zA-Z0-9_-]{1,63}$/);
const name = fc
  .array(label, { minLength: 1, maxLength: 8 })
  .map((labels) => labels.join('.'))
  .filter((text) => text.length < 250);

describe('parseQuery', () => {
  it('reads the question and EDNS of messages that another library has encoded', () => {
    fc.assert(
      fc.property(name, fc.nat(65_535), fc.option(fc.integer({ min: 1, max: 65_535 })), (text, id, size) => {
        const message = encode({
          type: 'query',
          id,
          flags: 0x100,
          questions: [{ name: text, type: 'AAAA' }],
          additionals: size === null ? [] : [opt(size)],
        });
        expect(parsed(message)).toMatchObject({
          id,
          flags: 0x100,
          labels: text.toLowerCase().split('.'),
          type: 28,
          class: 1,
          edns: size === null ? undefined : { udpBytes: size, version: 0, wantsSignatures: false },
        });
      }),
    );
  });

  it.each([
    ['no question', (m: Buffer) => m.writeUInt16BE(0, 4), 1],
    ['two questions', (m: Buffer) => m.writeUInt16BE(2, 4), 1],
    ['thousands of additional records', (m: Buffer) => m.writeUInt16BE(4000, 10), 1],
    ['another opcode', (m: Buffer) => m.writeUInt8(0x28, 2), 4],
    ['a compression pointer in the question', (m: Buffer) => m.writeUInt16BE(0xc00c, 12), 1],
    ['a label of more than 63 bytes', (m: Buffer) => m.writeUInt8(0x80, 12), 1],
    ['a label beyond the end', (m: Buffer) => m.writeUInt8(63, 12), 1],
    ['an answer that is missing', (m: Buffer) => m.writeUInt16BE(1, 6), 1],
  ])('a message with %s is an error', (_, change, rcode) => {
    const message = question('a.example.com');
    change(message);
    expect(parseQuery(message)).toEqual({ kind: 'error', rcode });
  });

  it('responses and fragments of a header are ignored', () => {
    expect(parseQuery(encode({ type: 'response', questions: [{ name: 'a', type: 'A' }] }))).toEqual({
      kind: 'ignored',
    });
    expect(parseQuery(question('a').subarray(0, 11))).toEqual({ kind: 'ignored' });
  });

  it('two OPT records, and an OPT record outside the additional section, are errors', () => {
    expect(parseQuery(question('a', 'A', [opt(512), opt(512)]))).toMatchObject({ kind: 'error' });
    const message = encode({ type: 'query', questions: [{ name: 'a', type: 'A' }], answers: [opt(512)] });
    expect(parseQuery(message)).toMatchObject({ kind: 'error' });
  });

  it('names differ if their labels do, even if their texts are the same', () => {
    const dotted = Buffer.concat([question('x').subarray(0, 12), Buffer.from('\x03a.b\0\0\x01\0\x01', 'latin1')]);
    expect(parsed(dotted).key).not.toBe(parsed(question('a.b')).key);
    const capital = Buffer.concat([question('x').subarray(0, 12), Buffer.from('\x01\xc0\0\0\x01\0\x01', 'latin1')]);
    const small = Buffer.concat([question('x').subarray(0, 12), Buffer.from('\x01\xe0\0\0\x01\0\x01', 'latin1')]);
    expect(parsed(capital).key).not.toBe(parsed(small).key);
    expect(parsed(question('A.B')).key).toBe(parsed(question('a.b')).key);
  });
});

describe('readName', () => {
  it('a name ends at a pointer that does not point backwards', () => {
    const loop = Buffer.from([1, 97, 0xc0, 0]);
    expect(readName(loop, 0, true)).toBeUndefined();
    expect(readName(Buffer.from([0xc0, 2, 0xc0, 0]), 2, true)).toBeUndefined();
    expect(readName(Buffer.from([1, 97, 0, 1, 98, 0xc0, 0]), 3, true)).toMatchObject({ labels: ['b', 'a'], end: 7 });
  });

  it('a name that becomes longer than 255 bytes by pointers is refused', () => {
    const part = Buffer.concat([Buffer.from([63]), Buffer.alloc(63, 97)]);
    const whole = Buffer.concat([part, part, part, Buffer.from([0]), part, Buffer.from([0xc0, 0])]);
    expect(readName(whole, 193, true)).toBeUndefined();
    expect(readName(whole, 0, true)?.labels).toHaveLength(3);
  });
});

const zone = new StoredZone(1);
zone.put({ op: 'put', kind: 'namespace', record: { name: 'ns1' } });
zone.put({
  op: 'put',
  kind: 'service',
  record: { namespace: 'ns1', name: 'web', ips: ['10.96.0.5'], ports: [{ name: 'http', protocol: 'tcp', port: 80 }] },
});
const unreachable: Forwarder = {
  stored: () => undefined,
  ask: () => Promise.reject(new Error('no server')),
  idle: async () => undefined,
};
const answer = createResponder({ data: () => zone, forwarder: unreachable, domain: 'cluster.local' });

describe('random messages', () => {
  /** Encoded queries with up to six changed bytes. */
  const damaged = fc
    .tuple(
      name,
      fc.constantFrom('A', 'SRV', 'ANY', 'TXT', 'PTR', 'SOA'),
      fc.array(fc.tuple(fc.nat(80), fc.nat(255)), { maxLength: 6 }),
    )
    .map(([text, type, changes]) => {
      const message = question(`${text}.ns1.svc.cluster.local`.slice(-250), type as 'A', [opt(1232)]);
      for (const [at, byte] of changes) if (at < message.length) message[at] = byte;
      return message;
    });
  const messages = fc.oneof(
    damaged,
    fc.uint8Array({ maxLength: 600 }).map(Buffer.from),
    damaged.chain((m) => fc.nat(m.length).map((n) => m.subarray(0, n))),
  );

  it('get no response, or one with their ID that another library can decode and that is not longer than the client accepts', async () => {
    await fc.assert(
      fc.asyncProperty(messages, fc.constantFrom('udp' as const, 'tcp' as const), async (message, transport) => {
        const response = await answer(Buffer.from(message), transport, '127.0.0.1');
        if (response === undefined) return;
        expect(response.length).toBeLessThanOrEqual(transport === 'udp' ? 1232 : 65_535);
        const { id, type } = decode(response) as Packet;
        expect({ id, type }).toEqual({ id: message.readUInt16BE(0), type: 'response' });
        expect(response.readUInt16BE(0)).toBe(message.readUInt16BE(0));
      }),
      { numRuns: 2000 },
    );
  });

  it('are read as records in time that is proportional to their length', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 12, maxLength: 2000 }), (bytes) => {
        const records = readRecords(Buffer.from(bytes), 12);
        if (records !== undefined) expect(records.length).toBeLessThanOrEqual(bytes.length / 11);
      }),
      { numRuns: 2000 },
    );
  });

  it('as large as TCP allows, with a long name at each possible place, are answered quickly', async () => {
    const message = Buffer.alloc(65_535, Buffer.concat([Buffer.from([63]), Buffer.alloc(63, 97)]));
    question('a').copy(message, 0, 0, 12);
    message.writeUInt16BE(2, 10);
    const began = process.cpuUsage();
    for (let i = 0; i < 1000; i++) await answer(message, 'tcp', '127.0.0.1');
    const { user, system } = process.cpuUsage(began);
    expect((user + system) / 1000).toBeLessThan(1000);
  });
});

import { constants, createDeflate, type Deflate, deflateRawSync, inflateSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DICTIONARY } from './dictionary.ts';
import { createHeaderReader, firstHeaderBlockPrefix, headerBlock } from './header-block.ts';

function read(block: Buffer): [string, string][] {
  let at = 4;
  const text = (): string => {
    const from = at + 4;
    at = from + block.readUInt32BE(at);
    return block.toString('utf8', from, at);
  };
  return Array.from({ length: block.readUInt32BE(0) }, () => [text(), text()]);
}

const inflate = (stream: Buffer): Buffer =>
  inflateSync(stream, { dictionary: DICTIONARY, finishFlush: constants.Z_SYNC_FLUSH });

test('a peer with the dictionary can read the header blocks of a connection as one zlib stream', () => {
  const first = headerBlock({ streamType: 'error' });
  const stream = Buffer.concat([firstHeaderBlockPrefix, first, headerBlock({ a: '1', b: 'ü' })]);
  const plain = inflate(stream);
  expect(read(plain)).toEqual([['streamtype', 'error']]);
  expect(read(plain.subarray(first.length - 10))).toEqual([
    ['a', '1'],
    ['b', 'ü'],
  ]);
});

test('headerBlock() writes the bytes of the specification', () => {
  expect(Buffer.concat([firstHeaderBlockPrefix, headerBlock({ a: 'b' })]).toString('hex')).toBe(
    [
      '7820e3c6a7c2', // zlib, preset dictionary, its Adler-32
      '000e00f1ff', // a stored block of 14 bytes
      '00000001' + '0000000161' + '0000000162',
      '000000ffff', // flush
    ].join(''),
  );
});

test('headerBlock() writes any headers so that a peer can read them', () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/);
  fc.assert(
    fc.property(fc.dictionary(name, fc.string({ unit: 'grapheme', maxLength: 200 })), (headers) => {
      const plain = inflate(Buffer.concat([firstHeaderBlockPrefix, headerBlock(headers)]));
      expect(Object.fromEntries(read(plain))).toEqual({ ...headers });
    }),
  );
});

test('headerBlock() refuses headers that exceed a stored block', () => {
  expect(() => headerBlock({ long: 'x'.repeat(65_536) })).toThrow(RangeError);
});

const compressed = (deflate: Deflate, plain: Buffer): Promise<Buffer> =>
  new Promise((resolve) => {
    deflate.write(plain);
    deflate.flush(constants.Z_SYNC_FLUSH, () => resolve(deflate.read() as Buffer));
  });

const plainBlock = (...pairs: [string, string][]): Buffer => {
  const number = (value: number): Buffer =>
    Buffer.of(value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255);
  const text = (value: string): Buffer[] => [number(value.length), Buffer.from(value, 'latin1')];
  return Buffer.concat([number(pairs.length), ...pairs.flatMap(([name, value]) => [...text(name), ...text(value)])]);
};

describe('reading the header blocks of a peer', () => {
  const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/[\s|]/g, ''), 'hex');
  const first = (plain: Buffer): Buffer =>
    Buffer.concat([
      firstHeaderBlockPrefix,
      deflateRawSync(plain, { dictionary: DICTIONARY, finishFlush: constants.Z_SYNC_FLUSH }),
    ]);

  test('the header reader reads blocks that refer to earlier blocks', async () => {
    const header = fc.tuple(fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/), fc.stringMatching(/^[ -~]{0,60}$/));
    const headers = fc.uniqueArray(header, { selector: ([name]) => name, maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(fc.array(headers, { maxLength: 60 }), async (blocks) => {
        const deflate = createDeflate({ dictionary: DICTIONARY });
        const readBlock = createHeaderReader();
        for (const block of blocks) {
          expect([...readBlock(await compressed(deflate, plainBlock(...block)))]).toEqual(block);
        }
      }),
      { numRuns: 30 },
    );
  });

  test('the header reader reads blocks that headerBlock() wrote', () => {
    const readBlock = createHeaderReader();
    const written = Buffer.concat([firstHeaderBlockPrefix, headerBlock({ streamType: 'error' })]);
    expect([...readBlock(written)]).toEqual([['streamtype', 'error']]);
    expect([...readBlock(headerBlock({ port: '80' }))]).toEqual([['port', '80']]);
  });

  test.each<[string, Buffer, string]>([
    ['64 MiB of zeros', first(Buffer.alloc(64 * 1024 * 1024)), 'more than 2048 bytes'],
    ['4,294,967,295 headers', first(hex('ffffffff')), '4294967295 headers'],
    ['a name of 4 GiB', first(hex('00000001 ffffffff 61')), 'shorter than declared'],
    ['a value of 4 GiB', first(hex('00000001 00000001 61 ffffffff')), 'shorter than declared'],
    ['no count', first(hex('0000')), 'shorter than declared'],
    ['surplus bytes', first(hex('00000000 00')), 'longer than declared'],
    ['an empty name', first(plainBlock(['', 'x'])), 'not in lower case'],
    ['a name in upper case', first(plainBlock(['Port', '80'])), 'not in lower case'],
    ['a value of two lines', first(plainBlock(['port', '8\r\n0'])), 'not printable'],
    ['two values', first(plainBlock(['port', '80\u000081'])), 'not printable'],
    ['one name twice', first(plainBlock(['port', '80'], ['port', '81'])), 'duplicate header'],
    ['no dictionary', hex('789c 010000ffff 000000ffff'), 'dictionary'],
    ['another dictionary', hex('7820 00000001 000000ffff'), 'dictionary'],
    ['no bytes', Buffer.alloc(0), 'dictionary'],
    ['missing bytes at its end', first(plainBlock(['port', '80'])).subarray(0, -3), 'does not end with a flush'],
    [
      'invalid deflate data',
      Buffer.concat([firstHeaderBlockPrefix, hex('ffffffff 0000ffff')]),
      'cannot be decompressed',
    ],
  ])('the header reader refuses a block with %s', (_what, block, message) => {
    expect(() => createHeaderReader()(block)).toThrow(message);
  });
});

import { constants, inflateSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { firstHeaderBlockPrefix, headerBlock } from './header-block.ts';

/** The dictionary of SPDY/3, section 2.6.10.1: words with their length before them, then plain text. */
const WORDS =
  'options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get status 200|OK version HTTP/1.1 url public set-cookie keep-alive origin'
    .split(' ')
    .map((word) => word.replace('|', ' '));
const TEXT =
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.';

function word(text: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, Buffer.from(text)]);
}

const dictionary = Buffer.concat([...WORDS.map(word), Buffer.from(TEXT)]);

/** Name and value after each other, as a peer reads them. */
function read(block: Buffer): [string, string][] {
  let at = 4;
  const text = (): string => {
    const from = at + 4;
    at = from + block.readUInt32BE(at);
    return block.toString('utf8', from, at);
  };
  return Array.from({ length: block.readUInt32BE(0) }, () => [text(), text()]);
}

const inflate = (stream: Buffer): Buffer => inflateSync(stream, { dictionary, finishFlush: constants.Z_SYNC_FLUSH });

test('a peer with the dictionary reads the blocks of a connection as one zlib stream', () => {
  const first = headerBlock({ streamType: 'error' });
  const stream = Buffer.concat([firstHeaderBlockPrefix, first, headerBlock({ a: '1', b: 'ü' })]);
  const plain = inflate(stream);
  expect(read(plain)).toEqual([['streamtype', 'error']]);
  expect(read(plain.subarray(first.length - 10))).toEqual([
    ['a', '1'],
    ['b', 'ü'],
  ]);
});

test('known bytes', () => {
  expect(Buffer.concat([firstHeaderBlockPrefix, headerBlock({ a: 'b' })]).toString('hex')).toBe(
    [
      '7820e3c6a7c2', // zlib, preset dictionary, its Adler-32
      '000e00f1ff', // a stored block of 14 bytes
      '00000001' + '0000000161' + '0000000162',
      '000000ffff', // flush
    ].join(''),
  );
});

test('any headers come out as they went in', () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/);
  fc.assert(
    fc.property(fc.dictionary(name, fc.string({ unit: 'grapheme', maxLength: 200 })), (headers) => {
      const plain = inflate(Buffer.concat([firstHeaderBlockPrefix, headerBlock(headers)]));
      expect(Object.fromEntries(read(plain))).toEqual({ ...headers });
    }),
  );
});

test('more than a stored block holds is refused', () => {
  expect(() => headerBlock({ long: 'x'.repeat(65_536) })).toThrow(RangeError);
});

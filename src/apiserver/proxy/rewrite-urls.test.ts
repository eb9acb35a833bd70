import { expect, test } from 'vitest';
import { htmlRewriter, rewriteUrl } from './rewrite-urls.ts';

const PREFIX = '/api/v1/namespaces/d/services/x/proxy';
const rewriting = { prefix: PREFIX, hosts: ['10.0.0.7:80', 'localhost:8001'] };

test.each([
  ['/login', `${PREFIX}/login`],
  ['/', `${PREFIX}/`],
  ['/a?b=/c#d', `${PREFIX}/a?b=/c#d`],
  ['http://10.0.0.7:80/a', `${PREFIX}/a`],
  ['//localhost:8001/a', `${PREFIX}/a`],
  [`${PREFIX}/a`, `${PREFIX}/a`],
  ['https://example.com/a', 'https://example.com/a'],
  ['a/b', 'a/b'],
  ['#top', '#top'],
  ['mailto:x@example.com', 'mailto:x@example.com'],
])('the URL %s becomes %s', (url, expected) => {
  expect(rewriteUrl(url, rewriting)).toBe(expected);
});

const PAGES: readonly (readonly [string, string])[] = [
  ['<a href="/x">/x</a>', `<a href="${PREFIX}/x">/x</a>`],
  ["<IMG alt='/y>' SRC=/x/y.png >", `<IMG alt='/y>' SRC=${PREFIX}/x/y.png >`],
  ['<script src="/s.js">a = "<a href=\'/x\'>";</script><a href="/z">', ''],
  ['<!-- <a href="/x"> --><a href="/x">é < 1', `<!-- <a href="/x"> --><a href="${PREFIX}/x">é < 1`],
  ['<p title="/x"><a href="rel">', '<p title="/x"><a href="rel">'],
  ['<a href="/unfinished', '<a href="/unfinished'],
];

async function rewritten(page: string, size: number): Promise<string> {
  const stream = htmlRewriter(rewriting);
  const bytes = Buffer.from(page);
  for (let at = 0; at < bytes.length; at += size) stream.write(bytes.subarray(at, at + size));
  stream.end();
  return Buffer.concat(await stream.toArray()).toString();
}

test.each(PAGES)('in the page %s only URLs in tags change, whatever the size of its pieces is', async (page, given) => {
  const script = `<script src="${PREFIX}/s.js">a = "<a href='/x'>";</script><a href="${PREFIX}/z">`;
  for (const size of [1, 2, 7, 1000]) expect(await rewritten(page, size)).toBe(given || script);
});

test('a tag that never ends passes unchanged', async () => {
  const page = `<a ${'x'.repeat(100_000)}`;
  expect(await rewritten(page, 65_536)).toBe(page);
});

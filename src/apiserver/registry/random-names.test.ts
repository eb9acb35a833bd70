import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { inBlocks } from './random-names.ts';

test('inBlocks returns each byte of the source at most once, and reads the source rarely', () => {
  const blocks: Uint8Array[] = [];
  const source = inBlocks((size) => {
    const block = randomBytes(size);
    blocks.push(block);
    return block;
  });
  const taken = Array.from({ length: 600 }, () => Buffer.from(source(16)).toString('hex'));
  expect(new Set(taken).size).toBe(600);
  expect(blocks.length).toBe(3);
  expect(Buffer.concat(blocks).toString('hex').startsWith(taken.join(''))).toBe(true);
  expect(source(10_000).length).toBe(10_000);
});

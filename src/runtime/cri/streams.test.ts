import { expect, test } from 'vitest';
import { requireLoopback } from './streams.ts';

test.each([
  'http://127.0.0.1:4000/exec/x',
  'http://127.1.2.3:1/attach/x',
  'http://[::1]:10/exec/x',
  'http://localhost:1/',
])('requireLoopback() accepts %s', (url) => {
  expect(requireLoopback(url)).toBe(url);
});

test.each([
  'http://192.168.0.1:4000/exec/x',
  'https://127.0.0.1:4000/exec/x',
  'http://127.example.com/exec/x',
  'http://[::]:10/exec/x',
  'http://127.0.0.1@10.0.0.1/exec/x',
])('requireLoopback() rejects %s', (url) => {
  expect(() => requireLoopback(url)).toThrow('not with http on loopback');
});

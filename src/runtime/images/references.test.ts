import { expect, test } from 'vitest';
import { normalizeReference } from './references.ts';

test.each([
  ['busybox', 'docker.io/library/busybox:latest'],
  ['busybox:1.28', 'docker.io/library/busybox:1.28'],
  ['team/app', 'docker.io/team/app:latest'],
  ['docker.io/busybox:1', 'docker.io/library/busybox:1'],
  ['index.docker.io/busybox:1', 'docker.io/library/busybox:1'],
  ['localhost/app:1', 'localhost/app:1'],
  ['localhost:5000/app', 'localhost:5000/app:latest'],
  ['example.com/team/app:2', 'example.com/team/app:2'],
  ['busybox@sha256:00', 'docker.io/library/busybox@sha256:00'],
  ['example.com/app:1@sha256:00', 'example.com/app:1@sha256:00'],
])('%s is %s', (short, complete) => {
  expect(normalizeReference(short)).toBe(complete);
  expect(normalizeReference(complete)).toBe(complete);
});

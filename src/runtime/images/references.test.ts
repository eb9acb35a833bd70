import { expect, test } from 'vitest';
import {
  familiarName,
  imageNameRule,
  normalizeReference,
  readsLikeId,
  referenceError,
  repositoryOf,
  storedName,
} from './references.ts';

const DIGEST = `sha256:${'0a'.repeat(32)}`;

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
])('the reference %s is completed to %s', (short, complete) => {
  expect(normalizeReference(short)).toBe(complete);
  expect(normalizeReference(complete)).toBe(complete);
});

test.each([
  ['docker.io/library/busybox:1.28', 'busybox:1.28'],
  ['docker.io/team/app:1', 'team/app:1'],
  ['docker.io/library/team/app:1', 'docker.io/library/team/app:1'],
  ['example.com/library/app:1', 'example.com/library/app:1'],
  [`docker.io/library/busybox@${DIGEST}`, `busybox@${DIGEST}`],
])('the familiar name of %s is %s', (complete, short) => {
  expect(familiarName(complete)).toBe(short);
});

test.each([
  ['busybox', 'docker.io/library/busybox', 'docker.io/library/busybox:latest'],
  ['localhost:5000/app', 'localhost:5000/app', 'localhost:5000/app:latest'],
  [`127.0.0.1:5000/team/app:1@${DIGEST}`, '127.0.0.1:5000/team/app', `127.0.0.1:5000/team/app@${DIGEST}`],
  [`busybox@${DIGEST}`, 'docker.io/library/busybox', `docker.io/library/busybox@${DIGEST}`],
])('the repository of %s is %s, and its stored name is %s', (reference, repository, name) => {
  expect(repositoryOf(reference)).toBe(repository);
  expect(storedName(reference)).toBe(name);
});

test('repositoryOf() takes linear time for a long reference', () => {
  const began = process.cpuUsage();
  expect(repositoryOf(`${':'.repeat(1_000_000)}\n`)).toBe(`docker.io/library/`);
  expect(process.cpuUsage(began).user).toBeLessThan(1_000_000);
});

test.each([
  'busybox',
  'BUSYBOX.example/app',
  'localhost:5000/team/app_a/b--c:1.2-rc_3',
  '[::1]:5000/app',
  `busybox@${DIGEST}`,
  `example.com/app:1@${DIGEST}`,
])('the reference %s is well formed', (reference) => {
  expect(referenceError(reference)).toBeUndefined();
});

test.each([
  ['busyBOX', 'invalid reference format: repository name (library/busyBOX) must be lowercase'],
  ['THIS IS NOT!', 'invalid reference format: repository name (library/THIS IS NOT!) must be lowercase'],
  ['example.com/Team/app:1', 'invalid reference format: repository name (Team/app) must be lowercase'],
  ['https://example.com/app:1', 'invalid reference format'],
  ['nginx:latest ', 'invalid reference format'],
  ['example.com//app:1', 'invalid reference format'],
  ['', 'invalid reference format'],
  [':tag', 'invalid reference format'],
  [`app:${'x'.repeat(129)}`, 'invalid reference format'],
  [`app@sha256:${'0'.repeat(32)}`, 'invalid checksum digest length'],
  [`app@md5:${'0'.repeat(32)}`, 'unsupported digest algorithm'],
  [`${'a'.repeat(250)}/b`, 'repository name must not be more than 255 characters'],
  ['0a'.repeat(32), `invalid repository name (${'0a'.repeat(32)}), cannot specify 64-byte hexadecimal strings`],
])('the reference %j is rejected: %s', (reference, why) => {
  expect(referenceError(reference)).toBe(why);
});

const NAME_RULE = /^an image name is \[REGISTRY\/\]PATH\[:TAG\]/;
test.each([
  ['busyBOX', NAME_RULE],
  [`busyBOX@${DIGEST}`, NAME_RULE],
  ['app@sha256:abc', /^an image digest is @sha256: with 64 hexadecimal digits$/],
  [`app@md5:${'0'.repeat(32)}`, /^an image digest is/],
  ['0a'.repeat(32), /: write sha256:(0a){32} for the image with this ID$/],
])('the rule for the invalid reference %j names what is wrong', (reference, rule) => {
  expect(imageNameRule(reference)).toMatch(rule);
});

test.each([
  ['0a'.repeat(6), true],
  [`sha256:${'0a'.repeat(32)}`, true],
  ['0a'.repeat(5), false],
  [`app:${'0a'.repeat(6)}`, false],
])('whether the reference %s reads like an ID: %s', (reference, expected) => {
  expect(readsLikeId(reference)).toBe(expected);
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { OciDescriptor } from '../archive-reader.ts';
import { emulatesCpus, refusalForCpu } from './archive-cpu.ts';

type Platform = NonNullable<OciDescriptor['platform']>;
const [ARM, AMD, I386]: Platform[] = ['arm64', 'amd64', '386'].map((architecture) => ({ os: 'linux', architecture }));
const WINDOWS: Platform = { os: 'windows', architecture: 'amd64' };
const ATTESTATION: Platform = { os: 'unknown', architecture: 'unknown' };

const named = (digest: string, name: string, platform?: Platform): OciDescriptor => ({
  digest,
  annotations: { 'org.opencontainers.image.ref.name': name },
  ...(platform === undefined ? {} : { platform }),
});
/** `documents`: by digest; undefined is a blob that is not a JSON object. */
const refusal = (manifests: OciDescriptor[], documents: Record<string, unknown>, cpu = 'amd64'): string | undefined => {
  const blobs = new Map<string, string | undefined>();
  for (const [digest, document] of Object.entries(documents))
    blobs.set(`blobs/${digest.replace(':', '/')}`, document === undefined ? undefined : JSON.stringify(document));
  return refusalForCpu('a.tar', { index: { manifests }, blobs }, cpu);
};
const manifest = (config: string): object => ({ config: { digest: config } });
const index = (...children: [digest: string, platform?: Platform][]): object => ({
  manifests: children.map(([digest, platform]) => ({ digest, platform })),
});

const OTHER =
  'the image archive a.tar has no image for this machine (linux/amd64), only for linux/arm64: build or save it for linux/amd64';
const ABSENT =
  'the image archive a.tar has no image for this machine (linux/amd64), although its index lists one: pull and save it for linux/amd64';

test.each<[string, Platform | undefined, string | undefined]>([
  ['this CPU', AMD, undefined],
  ['this CPU, by another name', { os: '', architecture: 'x86_64' }, undefined],
  ['an older CPU that this one includes', I386, undefined],
  ['another CPU', ARM, OTHER],
  ['another operating system', WINDOWS, OTHER.replace('linux/arm64', 'windows/amd64')],
  ['no CPU', {}, undefined],
])('an image whose index names no platform counts as built for that of its configuration: %s', (_, config, text) => {
  expect(refusal([named('sha256:m', 'web:1')], { 'sha256:m': manifest('sha256:c'), 'sha256:c': config })).toBe(text);
});

test.each<[string, [string, Platform?][], string | undefined]>([
  [
    'another CPU, and an attestation',
    [
      ['sha256:arm', ARM],
      ['sha256:att', ATTESTATION],
    ],
    OTHER,
  ],
  [
    'this CPU, which the archive lacks',
    [
      ['sha256:arm', ARM],
      ['sha256:lost', AMD],
    ],
    ABSENT,
  ],
  [
    'this CPU, whose configuration the archive lacks',
    [
      ['sha256:arm', ARM],
      ['sha256:half', AMD],
    ],
    ABSENT,
  ],
  [
    'both CPUs',
    [
      ['sha256:arm', ARM],
      ['sha256:amd', AMD],
    ],
    undefined,
  ],
  ['a CPU that is not named, and that the archive lacks', [['sha256:arm', ARM], ['sha256:lost']], undefined],
])('the images that a nested index lists decide: %s', (_, children, text) => {
  const documents = {
    'sha256:index': index(...children),
    'sha256:arm': manifest('sha256:c'),
    'sha256:amd': manifest('sha256:c'),
    'sha256:half': manifest('sha256:none'),
    'sha256:att': manifest('sha256:c'),
    'sha256:c': ARM,
  };
  expect(refusal([named('sha256:index', 'web:1')], documents)).toBe(text);
});

test('the refusal names the platform of each image', () => {
  const documents = { 'sha256:index': index(['sha256:w', WINDOWS], ['sha256:arm', ARM], ['sha256:arm', ARM]) };
  expect(refusal([named('sha256:index', 'web:1')], documents)).toBe(
    OTHER.replace('linux/arm64', 'windows/amd64, linux/arm64'),
  );
});

test('a platform that a descriptor names takes precedence over that of the configuration', () => {
  const documents = { 'sha256:m': manifest('sha256:c'), 'sha256:c': ARM };
  expect(refusal([named('sha256:m', 'web:1', AMD)], documents)).toBeUndefined();
  expect(refusal([named('sha256:m', 'web:1', ARM)], { ...documents, 'sha256:c': AMD })).toBe(OTHER);
});

test('the refusal names the image if the archive has several, and manifests with the same name count together', () => {
  const documents = { 'sha256:amd': manifest('sha256:c'), 'sha256:arm': manifest('sha256:d'), 'sha256:c': AMD };
  const both = { ...documents, 'sha256:d': ARM };
  expect(refusal([named('sha256:amd', 'web:1'), named('sha256:arm', 'db:1')], both)).toBe(
    OTHER.replace('no image for', 'no image db:1 for'),
  );
  expect(refusal([named('sha256:amd', 'web:1'), named('sha256:arm', 'web:1')], both)).toBeUndefined();
});

test('an image without a name is not checked, because containerd imports only named ones', () => {
  expect(refusal([{ digest: 'sha256:m', platform: ARM as Platform }], { 'sha256:m': manifest('sha256:c') })).toBe(
    undefined,
  );
});

test.each<[string, Record<string, unknown>]>([
  ['a manifest that is missing', {}],
  ['a manifest that is not JSON', { 'sha256:m': undefined }],
  ['manifests that are not a list', { 'sha256:m': { manifests: 5 } }],
  ['manifests that are not objects', { 'sha256:m': { manifests: [null, 5] } }],
  ['a configuration that is not an object', { 'sha256:m': { config: 'sha256:c' } }],
  ['a platform that is null', { 'sha256:m': { manifests: [{ digest: 'sha256:n', platform: null }] } }],
  ['an index that lists itself', { 'sha256:m': index(['sha256:m'], ['sha256:m', AMD]) }],
])('containerd reports what is wrong with %s', (_, documents) => {
  expect(refusal([named('sha256:m', 'web:1')], documents)).toBeUndefined();
});

test('a machine with arm64 also accepts images for arm', () => {
  const documents = { 'sha256:m': manifest('sha256:c'), 'sha256:c': { os: 'linux', architecture: 'arm' } };
  expect(refusal([named('sha256:m', 'web:1')], documents, 'arm64')).toBeUndefined();
});

test.each([
  ['qemu-aarch64', true],
  ['rosetta', true],
  ['python3.11', false],
])('a kernel with the handler %s for binary formats emulates other CPUs: %s', (handler, expected) => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-binfmt-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ['register', 'status', handler]) writeFileSync(join(folder, name), '');
  expect(emulatesCpus(folder)).toBe(expected);
  expect(emulatesCpus(join(folder, 'missing'))).toBe(false);
});

import { expect, test } from 'vitest';
import { architecture } from '../../platform/architecture.ts';
import { importFailure } from './import-failure.ts';

const ROOT = '/var/lib/lifepod/containerd/root';
const LAYER = `sha256:${'ab'.repeat(32)}`;
const OTHER = `sha256:${'cd'.repeat(32)}`;
const logLine = (error: string): string =>
  `time="2026-01-31T12:00:00Z" level=info msg="apply failure, attempting cleanup" error="${error}" key="extract-1-Kf ${LAYER}"\n`;
const damaged = (what: string): string =>
  `the image archive a.tar is damaged (${what} is missing or damaged): create it or copy it again`;
const full = (where: string): string =>
  `the image archive a.tar cannot be loaded: the disk of ${where} is full; free some space and try again`;
const ofRoot = `the folder ${ROOT}, which containerd needs,`;

const ENDED =
  'the image archive a.tar was not loaded: the container runtime ended meanwhile; start the engine again if it was stopped, and repeat the command';

test.each([
  [
    'a full disk while the content is written',
    `ctr: failed to ingest "x/layer.tar": failed to copy: failed to send write: write ${ROOT}/io.containerd.content.v1.content/ingest/b2/data: no space left on device: unknown\n`,
    full(ofRoot),
  ],
  [
    'a full disk while a layer is unpacked',
    `${logLine('x')}ctr: failed to extract layer ${LAYER}: mount callback failed on ${ROOT}/tmpmounts/containerd-mount35: write ${ROOT}/tmpmounts/containerd-mount35/file: no space left on device: unknown`,
    full(ofRoot),
  ],
  ['a full disk of an unknown folder', 'ctr: write: disk quota exceeded', full("containerd's folder")],
  [
    'a layer that an OCI layout lacks',
    `${logLine('failed')}ctr: failed to extract layer ${LAYER}: failed to get reader from content store: content digest ${OTHER}: not found`,
    damaged(`its layer ${OTHER}`),
  ],
  [
    'a manifest or configuration that an OCI layout lacks',
    `ctr: content digest ${OTHER}: not found`,
    damaged(`its blob ${OTHER}`),
  ],
  [
    'a layer that differs from the configuration',
    `${logLine(`wrong diff id calculated on extraction \\"${OTHER}\\"`)}ctr: wrong diff id calculated on extraction "${OTHER}"`,
    damaged('a layer'),
  ],
  [
    'a layer that ends early',
    `ctr: failed to extract layer ${LAYER}: mount callback failed on /x: unexpected EOF: unknown`,
    damaged(`its layer ${LAYER}`),
  ],
  [
    'a layer that ends early, in the words of containerd 2',
    `ctr: failed to extract layer (application/vnd.oci.image.layer.v1.tar+gzip ${LAYER}) to overlayfs as "extract-1-x ${OTHER}": mount callback failed on /x: gzip: invalid header`,
    damaged(`its layer ${LAYER}`),
  ],
  [
    'a layer that an archive of Docker lacks',
    'ctr: failed to resolve layers: layer "x/layer.tar" not found',
    damaged('its layer x/layer.tar'),
  ],
  [
    'a layer that an archive of skopeo lacks',
    'ctr: no target for symlink layer from "x/layer.tar" to "y.tar"',
    damaged('its layer y.tar'),
  ],
  [
    'an image for another CPU',
    'ctr: image might be filtered out\n',
    `the image archive a.tar has no image for this machine (linux/${architecture()}): build or save it for linux/${architecture()}`,
  ],
  [
    'an index of images for other CPUs',
    `ctr: no match for platform in manifest ${OTHER}: not found`,
    `the image archive a.tar has no image for this machine (linux/${architecture()}): build or save it for linux/${architecture()}`,
  ],
  ['a missing configuration', 'ctr: image config "x.json" not found', damaged('its configuration x.json')],
  [
    'a configuration that is not JSON',
    "ctr: unable to resolve platform: invalid character 'x' looking for beginning of value",
    'the image archive a.tar is damaged (its configuration is not JSON): create it or copy it again',
  ],
  [
    'a configuration that ends early',
    'ctr: unable to resolve platform: unexpected end of JSON input\n',
    'the image archive a.tar is damaged (its configuration is not JSON): create it or copy it again',
  ],
  [
    'another failure with a log line',
    `${logLine('mount failed')}ctr: no such device\n`,
    'containerd does not accept the image archive a.tar: no such device',
  ],
  ['a containerd that closes the connection', 'ctr: rpc error: transport is closing: unavailable\n', ENDED],
  ['a containerd that ends', 'ctr: error reading from server: EOF: unavailable', ENDED],
  [
    'a containerd that has ended before ctr connects',
    'ctr: failed to dial "/run/c.sock": context deadline exceeded: connection error: desc = "transport: error while dialing: dial unix:///run/c.sock: timeout"\n',
    ENDED,
  ],
  ['a containerd that ends during a write', 'ctr: failed to copy: EOF: unknown', ENDED],
  [
    'an archive that ends early',
    'ctr: archive/tar: unexpected EOF: unknown',
    'containerd does not accept the image archive a.tar: archive/tar: unexpected EOF: unknown',
  ],
  ['several lines', 'ctr: one\n\ntwo\n', 'containerd does not accept the image archive a.tar: one; two'],
  ['no output', '', 'containerd does not accept the image archive a.tar: ctr ended with exit code 1'],
])('%s is explained in one sentence', (_, stderr, text) => {
  expect(importFailure('a.tar', stderr, 1)).toBe(text);
});

test('an import that a signal ended is reported as such', () => {
  expect(importFailure('a.tar', '', null)).toBe('the image archive a.tar was not loaded: ctr was killed; try again');
});

import { expect, it } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';
import { imagesOf, isMeant, usesOf } from './images-in-use.ts';

it('imagesOf returns the images of all kinds of containers and of volumes', () => {
  expect(
    imagesOf({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: {
        initContainers: [{ name: 'i', image: 'init:1' }],
        containers: [{ name: 'a', image: 'app:1' }, { name: 'none' }],
        deferContainers: [
          { name: 'd', image: 'defer:1' },
          { name: 'f', imageFrom: 'a' },
        ],
        ephemeralContainers: [{ name: 'e', image: 'debug:1' }],
        volumes: [
          { name: 'files', image: { reference: 'files:1' } },
          { name: 'empty', emptyDir: {} },
        ],
      },
    }).sort(),
  ).toEqual(['app:1', 'debug:1', 'defer:1', 'files:1', 'init:1']);
});

it('isMeant accepts short and full names, digests and the ID of an image', () => {
  const digest = `sha256:${'0a'.repeat(32)}`;
  const image: ImageInfo = {
    id: 'sha256:id',
    tags: ['docker.io/library/busybox:1.28'],
    digests: [`docker.io/library/busybox@${digest}`],
    sizeBytes: 1,
  };
  for (const name of ['busybox:1.28', 'docker.io/library/busybox:1.28', `busybox:any@${digest}`, 'sha256:id'])
    expect(isMeant(image, name), name).toBe(true);
  for (const name of ['busybox', 'busybox:1', 'team/busybox:1.28', 'sha256:other'])
    expect(isMeant(image, name), name).toBe(false);
});

it('usesOf returns the ID of an image from which a container runs, although its name belongs to another image', () => {
  const [digest, other] = ['a', 'b'].map((digit) => `docker.io/library/app@sha256:${digit.repeat(64)}`);
  const old: ImageInfo = { id: 'sha256:old', tags: [], digests: [`${digest}`], sizeBytes: 1 };
  const current: ImageInfo = {
    id: 'sha256:new',
    tags: ['docker.io/library/app:1'],
    digests: [`${other}`],
    sizeBytes: 1,
  };
  const running = (imageID: string): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'a', image: 'app:1' }] },
    status: { containerStatuses: [{ name: 'a', image: 'app:1', imageID, ready: true, restartCount: 0 }] },
  });
  for (const imageID of ['sha256:old', `${digest}`]) {
    expect(usesOf(running(imageID), old)).toEqual(['sha256:old']);
    expect(usesOf(running(imageID), current)).toEqual(['app:1']);
  }
  for (const imageID of ['', 'sha256:new']) expect(usesOf(running(imageID), old)).toEqual([]);
});

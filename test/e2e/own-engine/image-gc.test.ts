/** The threshold is 1 % of the disk, which every disk exceeds. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { CRI_NAMESPACE, containerdPaths } from '../../../src/runtime/containerd/paths.ts';
import { connect } from '../../../src/runtime/cri/connection.ts';
import { writeImageArchive } from '../../../src/runtime/images/archive-writer.ts';
import { makeBusyboxArchive } from '../../../src/runtime/images/local-images.ts';
import { scratchFolder } from '../../support/lifepod.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, record, useOwnEngine } from '../../support/own-engine.ts';
import { isReady, waitsFor } from '../../support/pods.ts';

const scratch = scratchFolder();
afterAll(() => scratch.remove());
const thresholds = ['--image-gc-high-threshold', '1', '--image-gc-low-threshold', '0'];
useOwnEngine({ options: [...thresholds, '--minimum-image-ttl-duration', '1s'] });

async function removal(name: string, begun: () => Promise<void>): Promise<void> {
  const connection = connect(`unix://${containerdPaths(lifepod.dataDir).socket}`);
  const abort = new AbortController();
  const gone = Promise.withResolvers<void>();
  const onEvent = ({ event }: { event: { value: Buffer } | null }): void => {
    const type = 'containerd.services.events.v1.ImageChange';
    if (connection.decode<{ name: string }>(type, event?.value ?? Buffer.alloc(0)).name === name) gone.resolve();
  };
  const filters = [`namespace==${CRI_NAMESPACE},topic=="/images/delete"`];
  const stream = connection.stream(
    'containerd.services.events.v1.Events/Subscribe',
    { filters },
    onEvent,
    abort.signal,
  );
  try {
    await begun();
    await Promise.race([gone.promise, stream]);
  } finally {
    abort.abort();
    await stream.catch(() => undefined);
    connection.close();
  }
}

const archive = async (name: string): Promise<string> => {
  const file = join(scratch.path, `${name}.tar`);
  if (!existsSync(file)) await writeImageArchive(file, `example.com/${name}:1`, [], { env: [`NAME=${name}`] });
  return file;
};

it('unused images are removed after their minimum age, and images that containers of a Pod use or will need are kept', async () => {
  const used = join(scratch.path, 'used.tar');
  await makeBusyboxArchive(used, { reference: 'example.com/used:1' });
  // The Pod is created before its images are loaded, so that the images are never unused.
  await lifepod.apply(
    pod('user', {
      app: [{ name: 'app', script: WAIT, image: 'example.com/used:1', imagePullPolicy: 'Never' }],
      defer: [{ name: 'last', script: 'true', image: 'example.com/to-come:1', imagePullPolicy: 'Never' }],
    }),
  );
  await record.until('user', waitsFor('app', 'ErrImageNeverPull'));
  await lifepod.cliOk('image', 'load', used, await archive('to-come'));
  await record.until('user', isReady);

  await removal('example.com/unused:1', async () => {
    await lifepod.cliOk('image', 'load', await archive('unused'));
  });
  const list = await lifepod.cliOk('image', 'list');
  expect(list).toContain('example.com/used:1');
  expect(list).toContain('example.com/to-come:1');
  expect(list).toContain('localhost/lifepod/pause:1');
  expect(list).not.toContain('example.com/unused:1');

  await removal('example.com/to-come:1', async () => {
    await lifepod.delete('pod', 'user');
  });
  expect(await lifepod.cliOk('image', 'list')).toContain('localhost/lifepod/pause:1');
});

it('an Event on the node reports that the removal of all unused images does not free enough space', async () => {
  expect(await record.event('node-1', /FreeDiskSpaceFailed/)).toMatch(
    /^Warning FreeDiskSpaceFailed: Failed to garbage collect required amount of images\. Attempted to free \d+ bytes, but only found \d+ bytes eligible to free\.$/,
  );
});

/** Tests the Dockerfile and the README's section "In a container" on this machine. Skipped if no mirror of Debian answers. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { makeBusyboxArchive } from '../../src/runtime/images/local-images.ts';
import { buildImage, debianMirror } from './container/build-image.ts';
import { containerTests, readmeRun, type Subject } from './container/container-tests.ts';
import { startDocker } from './container/docker.ts';
import { thisMachine } from './container/this-machine.ts';

const mirror = await debianMirror();
if (mirror === undefined)
  process.stderr.write('the image of the Dockerfile is not tested, because no mirror of Debian answers\n');

describe.skipIf(mirror === undefined)('on this machine', () => {
  let subject: Subject;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'lifepod-image-'));
    const busybox = join(folder, 'busybox.tar');
    await makeBusyboxArchive(busybox, { reference: 'docker.io/library/busybox:1.28' });
    const { root, config } = await buildImage(folder, mirror ?? '');
    const place = thisMachine();
    const run = readmeRun();
    const docker = await startDocker(place, { folder: mkdtempSync('/tmp/lifepod-docker-'), image: root, config, run });
    subject = { place, docker, config, run, busybox, slowness: 1 };
  }, 900_000);
  afterAll(async () => {
    await subject?.docker.end();
    rmSync(folder, { recursive: true, force: true });
  });
  containerTests(() => subject);
});

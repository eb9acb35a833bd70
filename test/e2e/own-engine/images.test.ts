import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/api/generated/types.ts';
import { findProgram } from '../../../src/platform/processes.ts';
import { writeImageArchive } from '../../../src/runtime/images/archive-writer.ts';
import { makeBusyboxArchive } from '../../../src/runtime/images/local-images.ts';
import { busyboxArchive } from '../../support/images.ts';
import { scratchFolder } from '../../support/lifepod.ts';
import { pod, type ScriptedContainer, WAIT } from '../../support/manifests.ts';
import { lifepod, record, useOwnEngine } from '../../support/own-engine.ts';
import { inPhase, isReady, statusOf, waitsFor } from '../../support/pods.ts';
import {
  REGISTRY_PASSWORD,
  REGISTRY_USER,
  type Registry,
  startHalfwayGate,
  startRegistry,
} from '../../support/registry.ts';
import { startSession } from '../../support/session-command.ts';

let open: Registry;
let closed: Registry;

const scratch = scratchFolder();
beforeAll(async () => {
  open = await startRegistry(join(scratch.path, 'open'));
  closed = await startRegistry(join(scratch.path, 'closed'), { password: true });
});
afterAll(async () => {
  await Promise.all([open?.stop(), closed?.stop()]);
  await scratch.remove();
});
useOwnEngine({ options: ['--max-parallel-image-pulls', '1'] });

const of = (image: string, more: Partial<ScriptedContainer> = {}): ScriptedContainer => ({
  name: 'app',
  script: WAIT,
  image,
  ...more,
});
const credential = (username: string, password: string) => ({
  auth: Buffer.from(`${username}:${password}`).toString('base64'),
});
const pullSecret = (name: string, auths: object): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  type: 'kubernetes.io/dockerconfigjson',
  stringData: { '.dockerconfigjson': JSON.stringify({ auths }) },
});

describe('a registry with a password', () => {
  it('an image is pulled from a private registry with the matching pull secret, even if other secrets are wrong or missing', async () => {
    await closed.push(await busyboxArchive(), 'team/app:1');
    const image = `${closed.host}/team/app:1`;
    await lifepod.apply(pod('no-secret', { app: [of(image)] }));
    const refused = await record.until('no-secret', waitsFor('app', 'ErrImagePull'));
    expect(statusOf(refused, 'app').state?.waiting?.message).toMatch(
      /^rpc error: code = Unknown desc = failed to pull and unpack image .*401 Unauthorized$/,
    );

    await lifepod.apply(pullSecret('wrong', { [`${closed.host}/team`]: credential(REGISTRY_USER, 'not-it') }));
    await lifepod.apply(pullSecret('right', { [closed.host]: credential(REGISTRY_USER, REGISTRY_PASSWORD) }));
    const imagePullSecrets = [{ name: 'absent' }, { name: 'wrong' }, { name: 'right' }];
    await lifepod.apply(pod('with-secrets', { app: [of(image)], spec: { imagePullSecrets } }));
    await record.until('with-secrets', isReady);
    expect(record.events('with-secrets')).toContain(
      'Warning FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (absent); attempting to pull the image may not succeed.',
    );
    expect(await record.event('with-secrets', /^Normal Pulled: /)).toMatch(
      /Successfully pulled image ".*\/team\/app:1" in [\d.]+m?s \([\d.]+m?s including waiting\)\. Image size: \d+ bytes\./,
    );
  });

  it('a Pod without pull secrets uses those of its ServiceAccount', async () => {
    await closed.push(await busyboxArchive(), 'team/account:1');
    await lifepod.apply(pullSecret('of-account', { [closed.host]: credential(REGISTRY_USER, REGISTRY_PASSWORD) }));
    await lifepod.apply({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'puller' },
      imagePullSecrets: [{ name: 'of-account' }],
    });
    const spec = { serviceAccountName: 'puller' };
    await lifepod.apply(pod('by-account', { app: [of(`${closed.host}/team/account:1`)], spec }));
    await record.until('by-account', isReady);
  });

  it('no credential appears in logs or Events', async () => {
    const files = readdirSync(lifepod.dataDir, { recursive: true, encoding: 'utf8' })
      .map((name) => join(lifepod.dataDir, name))
      .filter((path) => path.endsWith('.log') && statSync(path).isFile());
    expect(files).not.toEqual([]);
    const secrets = [REGISTRY_PASSWORD, 'not-it', credential(REGISTRY_USER, REGISTRY_PASSWORD).auth];
    const texts = [...files.map((path) => readFileSync(path, 'utf8')), ...record.events('with-secrets')].join('\n');
    for (const secret of secrets) expect(texts).not.toContain(secret);
  });
});

describe('references', () => {
  it('an image that is given by digest is pulled once, and one with the tag latest is pulled for each Pod', async () => {
    const digest = await open.push(await busyboxArchive(), 'team/tool:latest');
    const byDigest = `${open.host}/team/tool@${digest}`;
    await lifepod.apply(pod('by-digest', { app: [of(byDigest)] }));
    const running = await record.until('by-digest', isReady);
    expect(running.spec?.containers[0]?.imagePullPolicy).toBe('IfNotPresent');
    expect(statusOf(running, 'app').imageID).toMatch(new RegExp(`@${digest}$`));
    await lifepod.apply(pod('by-digest-again', { app: [of(`${open.host}/team/tool:any@${digest}`)] }));
    await record.until('by-digest-again', isReady);
    await record.event('by-digest-again', /^Normal Pulled: Container image ".*" already present on machine$/);

    for (const name of ['latest-1', 'latest-2']) {
      await lifepod.apply(pod(name, { app: [of(`${open.host}/team/tool`)] }));
      expect((await record.until(name, isReady)).spec?.containers[0]?.imagePullPolicy).toBe('Always');
      await record.event(name, /^Normal Pulled: Successfully pulled image/);
    }
  });

  it('an invalid image name is reported as InvalidImageName', async () => {
    await lifepod.apply(pod('misnamed', { app: [of('Example.com/busyBOX')] }));
    const shown = await record.until('misnamed', waitsFor('app', 'InvalidImageName'));
    const message = `Failed to apply default image tag "Example.com/busyBOX": couldn't parse image name "Example.com/busyBOX": invalid reference format: repository name (busyBOX) must be lowercase`;
    expect(statusOf(shown, 'app').state?.waiting).toEqual({ reason: 'InvalidImageName', message });
    await record.event('misnamed', /^Warning Failed: Error: InvalidImageName$/);
    expect(record.events('misnamed')).toContain(`Warning InspectFailed: ${message}`);
  });

  it('the pull of an image that its registry does not have backs off, and the status shows the reason', async () => {
    const image = `${open.host}/team/none:1`;
    await lifepod.apply(pod('unknown', { app: [of(image)] }));
    const waiting = await record.until('unknown', waitsFor('app', 'ImagePullBackOff'));
    expect(statusOf(waiting, 'app').state?.waiting?.message).toMatch(
      new RegExp(`^Back-off pulling image "${image}": ErrImagePull: .*not found`),
    );
    for (const line of [
      /^Normal Pulling: /,
      /^Warning Failed: Failed to pull image /,
      /^Warning Failed: Error: ErrImagePull$/,
    ])
      await record.event('unknown', line);
    await record.event('unknown', /^Normal BackOff: Back-off pulling image ".*\/team\/none:1"$/);
    await record.event('unknown', /^Warning Failed: Error: ImagePullBackOff$/);
  });
});

describe('an image that is loaded while Pods wait for it', () => {
  it('loading an image immediately starts Pods that wait for it in back-off or with pull policy Never', async () => {
    const image = `${open.host}/team/late:1`;
    const archive = join(scratch.path, 'late.tar');
    await makeBusyboxArchive(archive, { reference: [image, 'example.com/late:latest'] });
    await lifepod.apply(pod('patient', { app: [of(image)] }));
    await lifepod.apply(pod('told-never', { app: [of(image, { imagePullPolicy: 'Never' })] }));
    const never = await record.until('told-never', waitsFor('app', 'ErrImageNeverPull'));
    const message = `Container image "${image}" is not present with pull policy of Never`;
    expect(statusOf(never, 'app').state?.waiting?.message).toBe(message);
    await record.event('told-never', /^Warning Failed: Error: ErrImageNeverPull$/);
    expect(record.events('told-never')).toContain(`Warning ErrImageNeverPull: ${message}`);
    const waiting = await record.until('patient', waitsFor('app', 'ImagePullBackOff'));

    expect(await lifepod.cli('image', 'load', archive)).toEqual({
      code: 0,
      stdout: `loaded ${image}\nloaded example.com/late:latest\n`,
      stderr: expect.stringMatching(
        /^lifepod: Pods pull example\.com\/late:latest although it is on this machine, unless they set imagePullPolicy: IfNotPresent, or use a tag other than latest\n$/m,
      ),
    });
    const loaded = Date.now();
    await Promise.all([record.until('patient', isReady), record.until('told-never', isReady)]);
    // The back-off would have delayed the next pull until 10 s after the first.
    expect(Date.now() - loaded).toBeLessThan(5000);
    expect(statusOf(waiting, 'app').restartCount).toBe(0);
    await record.event('patient', /^Normal Pulled: Container image ".*" already present on machine$/);
    expect(record.events('patient').filter((line) => /^Normal Pulling: /.test(line)).length).toBe(1);
  });
});

describe('an image that is loaded, and that no registry has', () => {
  it('a Pod with pull policy Never uses a loaded image that no registry has, and a Pod with Always does not', async () => {
    const image = `${open.host}/team/loaded:1`;
    const archive = join(scratch.path, 'loaded.tar');
    await makeBusyboxArchive(archive, { reference: image });
    await lifepod.cliOk('image', 'load', archive);
    await lifepod.apply(pod('never', { app: [of(image, { imagePullPolicy: 'Never' })] }));
    await lifepod.apply(pod('always', { app: [of(image, { imagePullPolicy: 'Always' })] }));
    await record.until('never', isReady);
    await record.event('never', /^Normal Pulled: Container image ".*" already present on machine$/);
    await record.until('always', waitsFor('app', 'ErrImagePull', 'ImagePullBackOff'));
    expect(await lifepod.cliOk('why', 'always')).toContain('set imagePullPolicy: IfNotPresent');
  });
});

describe('hosts.toml of a registry', () => {
  it('a new hosts.toml in the data folder redirects pulls from a registry without a restart of the engine', async () => {
    await open.push(await busyboxArchive(), 'team/mirrored:1');
    const folder = join(lifepod.dataDir, 'certs.d', 'registry.example');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'hosts.toml'), `[host."http://${open.host}"]\n  capabilities = ["pull", "resolve"]\n`);
    await lifepod.apply(pod('mirrored', { app: [of('registry.example/team/mirrored:1')] }));
    await record.until('mirrored', isReady);
  });
});

describe('lifepod image', () => {
  it('lifepod image lists all images, and removes only images that no Pod uses', async () => {
    const [kept, gone] = ['example.com/kept:1', 'example.com/gone:1'];
    for (const reference of [kept, gone]) {
      const archive = join(scratch.path, 'tool.tar');
      await writeImageArchive(archive, reference, [], { env: [`NAME=${reference}`], command: ['/none'] });
      await lifepod.cliOk('image', 'load', archive);
    }
    await lifepod.apply(pod('ends-with-kept', { defer: [{ name: 'last', script: 'true', image: kept }] }));
    await record.until('ends-with-kept', isReady);
    const list = await lifepod.cliOk('image', 'list');
    expect(list.split('\n')[0]).toMatch(/^IMAGE +ID +SIZE +PODS$/);
    expect(list).toMatch(/^docker\.io\/library\/busybox:1\.28 +[0-9a-f]{12} +[\d.]+ MiB(, shared)? +\d+$/m);
    expect(list).toMatch(/^example\.com\/kept:1 +[0-9a-f]{12} +[\d.]+ (B|KiB) +1$/m);
    expect(list).toMatch(/^example\.com\/gone:1 +[0-9a-f]{12} +[\d.]+ (B|KiB) +0$/m);
    expect(await lifepod.cliOk('image', 'ls')).toBe(list);

    const refused = await lifepod.cli('image', 'rm', gone, kept);
    expect(refused).toMatchObject({
      code: 1,
      stderr: `lifepod: the image ${kept} is used by the Pod default/ends-with-kept: delete it first; no image was removed\n`,
    });
    const again = 'example.com/again:1';
    await writeImageArchive(join(scratch.path, 'tool.tar'), again, [], {
      env: [`NAME=${gone}`],
      command: ['/none'],
    });
    await lifepod.cliOk('image', 'load', join(scratch.path, 'tool.tar'));
    expect(await lifepod.cliOk('image', 'rm', again)).toBe(`removed ${again}; the image keeps ${gone}\n`);
    expect(await lifepod.cliOk('image', 'list')).toMatch(/^example\.com\/gone:1 +[0-9a-f]{12} +[\d.]+ (B|KiB) +0$/m);
    expect(await lifepod.cliOk('image', 'rm', gone)).toBe(`removed ${gone}\n`);
    const unknown = await lifepod.cli('image', 'rm', gone);
    expect(unknown).toMatchObject({
      code: 1,
      stderr: `lifepod: there is no image ${gone}: 'lifepod image list --data-dir ${lifepod.dataDir}' shows all images\n`,
    });
    const sandbox = await lifepod.cli('image', 'rm', 'localhost/lifepod/pause:1');
    expect(sandbox.stderr).toMatch(
      /^lifepod: the image localhost\/lifepod\/pause:1 cannot be removed: the sandbox of every Pod uses it\n$/,
    );
    const left = await lifepod.cliOk('image', 'list');
    expect(left).toContain(kept);
    expect(left).not.toContain(gone);
    await lifepod.delete('pod', 'ends-with-kept', '--grace-period=1');
  });
});

describe('a long pull', () => {
  it('a long pull reports its progress in the status and in Events, and the next pull waits', async () => {
    const archive = join(scratch.path, 'large.tar');
    const shell = {
      type: 'file',
      path: 'bin/sh',
      mode: 0o755,
      content: readFileSync(findProgram('busybox') ?? ''),
    } as const;
    const ballast = { type: 'file', path: 'ballast', mode: 0o644, content: randomBytes(8 * 2 ** 20) } as const;
    const folder = { type: 'directory', path: 'bin', mode: 0o755 } as const;
    await writeImageArchive(archive, 'example.com/large:1', [folder, shell, ballast], { env: ['PATH=/bin'] });
    await open.push(archive, 'team/large:1');
    await open.push(await busyboxArchive(), 'team/next:1');
    const gate = await startHalfwayGate(open.host);
    try {
      const image = `${gate.host}/team/large:1`;
      await lifepod.apply(pod('slow', { app: [of(image, { script: 'true' })], spec: { restartPolicy: 'Never' } }));
      const message = ({ status }: Pod): string => status?.containerStatuses?.[0]?.state?.waiting?.message ?? '';
      const half = new RegExp(`^Pulling image "${image}": (2[5-9]|[34]\\d|50)% of [89](\\.\\d)? MiB$`);
      const waiting = await record.until('slow', (seen) => half.test(message(seen)));
      expect(statusOf(waiting, 'app').state?.waiting?.reason).toBe('ContainerCreating');
      await record.event('slow', new RegExp(`^Normal Pulling: Pulling image "${image}": \\d+% of `));
      const next = `${open.host}/team/next:1`;
      await lifepod.apply(pod('next', { app: [of(next)] }));
      // This session without a terminal has a Pod that needs the same image.
      const waits = pod('waits', { app: [of(image, { script: 'true' })], spec: { restartPolicy: 'Never' } });
      const session = startSession(lifepod.dataDir, 'up', ['-'], JSON.stringify(waits));
      await session.printed(new RegExp(`^pulling ${image}$`, 'm'));
      await record.until('next', (seen) => message(seen) === `Waiting for other pulls before image "${next}"`);
      gate.open();
      expect(await session.ended).toMatchObject({ code: 0, stderr: expect.stringContaining(`\npulled ${image}\n`) });
      await record.until('next', isReady);
      await record.until('slow', inPhase('Succeeded'));
    } finally {
      await gate.stop();
    }
  });
});

it('lifepod image make makes busybox for a Pod that waits for it, as lifepod why advises, and no other image', async () => {
  const image = 'busybox:made';
  await lifepod.apply(pod('made', { app: [of(image, { imagePullPolicy: 'Never' })] }));
  await record.until('made', waitsFor('app', 'ErrImageNeverPull'));
  expect(await lifepod.cliOk('why', 'made')).toContain(`lifepod image make ${image} --data-dir ${lifepod.dataDir}`);
  expect(await lifepod.cliOk('image', 'make', image, 'busybox:made-too', image)).toBe(
    `loaded docker.io/library/${image}\nloaded docker.io/library/busybox:made-too\n`,
  );
  expect(await lifepod.cliOk('image', 'list')).toMatch(/busybox:made-too +[0-9a-f]{12} +[\d.]+ MiB, shared +0$/m);
  await record.until('made', isReady);
  expect(await lifepod.cli('image', 'make', image, 'nginx')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: `lifepod: the image nginx cannot be made from this machine, only busybox can, with any tag: load an archive with 'lifepod image load FILE --data-dir ${lifepod.dataDir}'\n`,
  });
});

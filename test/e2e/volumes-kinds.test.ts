import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { Node } from '../../src/api/generated/types.ts';
import { runCommandOk } from '../../src/platform/processes.ts';
import { containerdPaths } from '../../src/runtime/containerd/paths.ts';
import { writeImageArchive } from '../../src/runtime/images/archive-writer.ts';
import { type Scratch, scratchFolder } from '../support/lifepod.ts';
import { pod, type ScriptedContainer, WAIT } from '../support/manifests.ts';
import { ended, inPhase, isReady, statusOf, waitsFor } from '../support/pods.ts';
import { type Registry, startRegistry } from '../support/registry.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

const IMAGE = 'example.com/content:1';

let registry: Registry;
let scratch: Scratch;
test.beforeAll(async () => {
  scratch = scratchFolder();
  registry = await startRegistry(scratch.path);
});
test.afterAll(async () => {
  await registry?.stop();
  await scratch?.remove();
});

const deleteNow = (name: string): Promise<void> => lifepod.delete('pod', name, '--now');
/** Resolves with the lines of the container's log. */
async function output(
  name: string,
  volumes: object[],
  app: Omit<ScriptedContainer, 'name'>,
  spec: object = {},
): Promise<string[]> {
  await lifepod.apply(
    pod(name, {
      app: [{ name: 'app', ...app } as ScriptedContainer],
      spec: { restartPolicy: 'Never', volumes, ...spec },
    }),
  );
  await record.until(name, ended('app'));
  const text = await lifepod.kubectlOk('logs', name);
  await deleteNow(name);
  return text.trim().split('\n');
}
const at = (name: string, mountPath: string, more: object = {}): object => ({ name, mountPath, ...more });

describe.concurrent('volumes', () => {
  describe('emptyDir', () => {
    test('an emptyDir in memory is limited to its sizeLimit, or to the allocatable memory of the node', async () => {
      const volumes = [
        { name: 'm', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
        { name: 'open', emptyDir: { medium: 'Memory' } },
      ];
      const lines = await output('memory', volumes, {
        script:
          'df -k /m /open | grep -v Filesystem; dd if=/dev/zero of=/m/f bs=1024 count=2048 2>&1 | grep -c "No space left"',
        volumeMounts: [at('m', '/m'), at('open', '/open')],
      });
      const { status } = await lifepod.get<Node>('node', 'node-1');
      expect(lines[0]).toMatch(/^tmpfs +1024 /);
      expect(lines[1]?.split(/ +/)[1]).toBe(status?.allocatable?.['memory']?.replace(/Ki$/, ''));
      expect(lines[2]).toBe('1');
    });

    test('several containers can mount the same new subPath, and a subPath can be a file', async () => {
      const volumes = [{ name: 'd', emptyDir: {} }];
      const own = { volumeMounts: [at('d', '/own', { subPath: 'new/deep' })] };
      await lifepod.apply(
        pod('shared-path', {
          init: [{ name: 'init', script: 'echo content >/all/file', volumeMounts: [at('d', '/all')] }],
          app: [
            {
              name: 'app',
              script: `until [ -e /own/b ]; do sleep 0.05; done; cat /file; stat -c %F /file`,
              volumeMounts: [...own.volumeMounts, at('d', '/file', { subPath: 'file' })],
            },
            { name: 'b', script: 'touch /own/b', ...own },
            { name: 'c', script: 'touch /own/c', ...own },
          ],
          spec: { restartPolicy: 'Never', volumes },
        }),
      );
      await record.until('shared-path', inPhase('Succeeded'));
      expect(await lifepod.kubectlOk('logs', 'shared-path', '-c', 'app')).toBe('content\nregular file\n');
      expect(record.events('shared-path').filter((line) => line.startsWith('Warning'))).toEqual([]);
      await deleteNow('shared-path');
    });

    test('a subPathExpr with an unknown or empty variable keeps its container waiting', async () => {
      const env = [{ name: 'TENANT', value: '' }];
      const volumeMounts = [at('d', '/d', { subPathExpr: '$(TENANT)' })];
      const app = [
        { name: 'app', script: WAIT, volumeMounts: [at('d', '/d', { subPathExpr: '$(NOPE)' })] },
        { name: 'empty', script: WAIT, env, volumeMounts },
      ];
      await lifepod.apply(pod('unknown-path', { app, spec: { volumes: [{ name: 'd', emptyDir: {} }] } }));
      const waiting = await record.until('unknown-path', waitsFor('app', 'CreateContainerConfigError'));
      expect(statusOf(waiting, 'app').state?.waiting?.message).toBe('missing value for NOPE');
      const empty = await record.until('unknown-path', waitsFor('empty', 'CreateContainerConfigError'));
      expect(statusOf(empty, 'empty').state?.waiting?.message).toBe('missing value for TENANT');
      await deleteNow('unknown-path');
    });

    test('a subPathExpr is expanded, created and mounted as a folder, and a mount with readOnly is read-only', async () => {
      const lines = await output('paths', [{ name: 'd', emptyDir: {} }], {
        script: 'echo x >/mine/f; cat /all/logs/paths/f; touch /read/f 2>&1',
        env: [{ name: 'ME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
        volumeMounts: [
          at('d', '/all'),
          at('d', '/mine', { subPathExpr: 'logs/$(ME)' }),
          at('d', '/read', { readOnly: true }),
        ],
      });
      expect(lines).toEqual(['x', 'touch: /read/f: Read-only file system']);
    });
  });

  describe('hostPath', () => {
    const fail = async (name: string, hostPath: { path: string; type: string }, what: string): Promise<void> => {
      const app = [{ name: 'app', script: WAIT, volumeMounts: [at('h', '/h')] }];
      await lifepod.apply(pod(name, { app, spec: { volumes: [{ name: 'h', hostPath }] } }));
      expect(await record.event(name, /FailedMount/)).toBe(
        `Warning FailedMount: MountVolume.SetUp failed for volume "h" : hostPath type check failed: ${hostPath.path} is not ${what}`,
      );
      await deleteNow(name);
    };

    test('a hostPath of each type is mounted', async () => {
      const folder = join(lifepod.dataDir, 'host');
      mkdirSync(folder);
      writeFileSync(join(folder, 'file'), 'content\n');
      const socket = createServer().listen(join(folder, 'socket'));
      await runCommandOk('mknod', [join(folder, 'block'), 'b', '7', '0']);
      const types = [
        ['any', folder, ''],
        ['dir', folder, 'Directory'],
        ['new', join(folder, 'new/deep'), 'DirectoryOrCreate'],
        ['file', join(folder, 'file'), 'File'],
        ['made', join(folder, 'made'), 'FileOrCreate'],
        ['sock', join(folder, 'socket'), 'Socket'],
        ['char', '/dev/null', 'CharDevice'],
        ['block', join(folder, 'block'), 'BlockDevice'],
      ] as const;
      try {
        const lines = await output(
          'types',
          types.map(([name, path, type]) => ({ name, hostPath: { path, type } })),
          {
            script:
              'cd /at; for n in any dir new file made sock char block; do stat -c "%n %F" $n; done; cat file; stat -c %a new made',
            volumeMounts: types.map(([name]) => at(name, `/at/${name}`)),
          },
        );
        expect(lines).toEqual([
          'any directory',
          'dir directory',
          'new directory',
          'file regular file',
          'made regular empty file',
          'sock socket',
          'char character special file',
          'block block special file',
          'content',
          '755',
          '644',
        ]);
      } finally {
        socket.close();
      }
    });

    test('a hostPath volume whose path does not have the given type is not mounted, and an Event reports the reason', async () => {
      const file = join(lifepod.dataDir, 'kubeconfig');
      await Promise.all([
        fail('no-directory', { path: file, type: 'Directory' }, 'a directory'),
        fail('no-file', { path: '/dev/null', type: 'File' }, 'a file'),
        fail('no-socket', { path: file, type: 'Socket' }, 'a socket file'),
        fail('no-char', { path: file, type: 'CharDevice' }, 'a character device'),
        fail('no-block', { path: '/dev/null', type: 'BlockDevice' }, 'a block device'),
        fail('absent', { path: '/nonexistent/x', type: 'Directory' }, 'a directory'),
      ]);
    });

    test('mounts inside a volume propagate between the node and containers as mountPropagation specifies', async () => {
      const shared = join(lifepod.dataDir, lifepod.namespace);
      mkdirSync(shared);
      await runCommandOk('mount', ['-t', 'tmpfs', 'tmpfs', shared]);
      await runCommandOk('mount', ['--make-rshared', shared]);
      for (const name of ['later', 'out']) mkdirSync(join(shared, name));
      const mounts = (mountPropagation: string): object => ({
        volumeMounts: [at('s', '/s', { mountPropagation })],
      });
      const waitFor = (what: string): string => `until ${what}; do sleep 0.05; done`;
      await lifepod.apply(
        pod('spread', {
          app: [
            {
              name: 'follower',
              script: `${waitFor('[ -e /s/later/f ]')}; echo follows; ${waitFor('[ -e /s/out/g ]')}; echo both; ${WAIT}`,
              ...mounts('HostToContainer'),
            },
            { name: 'alone', script: WAIT, ...mounts('None') },
            {
              name: 'giver',
              script: `${waitFor('[ -e /s/go ]')}; mount -t tmpfs tmpfs /s/out && touch /s/out/g; ${WAIT}`,
              securityContext: { privileged: true },
              ...mounts('Bidirectional'),
            },
          ],
          spec: { volumes: [{ name: 's', hostPath: { path: shared } }] },
        }),
      );
      try {
        await record.until('spread', isReady);
        await runCommandOk('mount', ['-t', 'tmpfs', 'tmpfs', join(shared, 'later')]);
        writeFileSync(join(shared, 'later/f'), '');
        await lifepod.until(['logs', '-f', 'spread', '-c', 'follower'], (line) => line === 'follows');
        writeFileSync(join(shared, 'go'), '');
        await lifepod.until(['logs', '-f', 'spread', '-c', 'follower'], (line) => line === 'both');
        expect(await lifepod.execOk('spread', '-c', 'alone', '--', 'ls', '/s/later', '/s/out')).toBe(
          '/s/later:\n\n/s/out:\n',
        );
      } finally {
        await deleteNow('spread');
        await runCommandOk('umount', ['--recursive', shared]);
      }
    });

    test('Bidirectional mountPropagation needs a privileged container, and recursiveReadOnly Enabled needs support of the runtime', async () => {
      const app = { name: 'app', script: WAIT };
      const spec = { volumes: [{ name: 'h', hostPath: { path: lifepod.dataDir } }] };
      const refused = pod('refused', {
        app: [{ ...app, volumeMounts: [at('h', '/h', { mountPropagation: 'Bidirectional' })] }],
        spec,
      });
      expect((await lifepod.kubectlInput(JSON.stringify(refused), 'apply', '-f', '-')).stderr).toContain(
        'Bidirectional mount propagation is available only to privileged containers',
      );
      const recursive = (recursiveReadOnly: string): object => ({
        volumeMounts: [at('h', '/h', { readOnly: true, recursiveReadOnly })],
      });
      const possible = pod('possible', { app: [{ ...app, ...recursive('IfPossible') }], spec });
      const enabled = pod('enabled', { app: [{ ...app, ...recursive('Enabled') }], spec });
      await Promise.all([lifepod.apply(possible), lifepod.apply(enabled)]);
      await record.until('possible', isReady);
      const waiting = await record.until('enabled', waitsFor('app', 'CreateContainerConfigError'));
      expect(statusOf(waiting, 'app').state?.waiting?.message).toBe(
        'failed to resolve recursive read-only mode: volume "h" requested recursive read-only mode, but it is not supported by the runtime',
      );
      await Promise.all([deleteNow('possible'), deleteNow('enabled')]);
    });
  });

  describe('image', () => {
    const volume = (pullPolicy: string, reference = IMAGE): object => ({ name: 'i', image: { reference, pullPolicy } });
    test('an image volume has the files of the image or a subPath, read-only, and keeps them when the tag moves to another image', async () => {
      const archive = join(lifepod.dataDir, 'content.tar');
      const folder = { type: 'directory', path: 'data/', mode: 0o755 } as const;
      const file = { type: 'file', path: 'data/greeting', mode: 0o644, content: 'hello\n' } as const;
      await writeImageArchive(archive, IMAGE, [folder, file], { env: [] });
      await lifepod.cliOk('image', 'load', archive);
      const script = `cat /i/data/greeting /part/greeting; touch /i/x 2>&1; ${WAIT}`;
      const volumeMounts = [at('i', '/i'), at('i', '/part', { subPath: 'data' })];
      const app = [{ name: 'app', script, volumeMounts }];
      const defer = [{ name: 'last', script: 'cat /i/data/greeting', volumeMounts: [at('i', '/i')] }];
      await lifepod.apply(pod('content', { app, defer, spec: { volumes: [volume('IfNotPresent')] } }));
      await record.until('content', isReady);
      expect(await lifepod.until(['logs', '-f', 'content', '-c', 'app'], (line) => line.startsWith('touch'))).toEqual([
        'hello',
        'hello',
        'touch: /i/x: Read-only file system',
      ]);
      expect(await record.event('content', /content:1/)).toBe(
        `Normal Pulled: Container image "${IMAGE}" already present on machine`,
      );
      // The tag moves to another image, so only the volume still keeps the first image.
      await writeImageArchive(archive, IMAGE, [folder, { ...file, content: 'other\n' }], { env: [] });
      await lifepod.cliOk('image', 'load', archive);
      expect(await lifepod.execOk('content', '-c', 'app', '--', 'cat', '/i/data/greeting')).toBe('hello\n');
      const next = { script: 'cat /i/data/greeting', volumeMounts: [at('i', '/i')] };
      expect(await output('next-content', [volume('Never')], next)).toEqual(['other']);
      await deleteNow('content');
      // The snapshots of image volumes are removed with their Pods, so that they do not keep the images.
      await Promise.all([record.gone('content'), record.gone('next-content')]);
      const { socket } = containerdPaths(lifepod.dataDir);
      const snapshots = await runCommandOk('ctr', ['-a', socket, '-n', 'k8s.io', 'snapshots', 'ls']);
      expect(snapshots).toContain('sha256:');
      for (const name of ['content', 'next-content'])
        expect(snapshots).not.toContain(`lifepod-volume/${record.now(name).metadata.uid}/`);
    });

    test('the layers of the image of an image volume are unpacked if only the image has been imported', async () => {
      const archive = join(lifepod.dataDir, 'packed.tar');
      const file = { type: 'file', path: 'greeting', mode: 0o644, content: 'unpacked\n' } as const;
      await writeImageArchive(archive, 'example.com/packed:1', [file], { env: [] });
      const { socket } = containerdPaths(lifepod.dataDir);
      await runCommandOk('ctr', ['-a', socket, '-n', 'k8s.io', 'images', 'import', '--no-unpack', archive]);
      const app = { script: 'cat /i/greeting', volumeMounts: [at('i', '/i')] };
      expect(await output('packed', [volume('IfNotPresent', 'example.com/packed:1')], app)).toEqual(['unpacked']);
      expect(record.events('packed').filter((event) => event.startsWith('Warning FailedMount'))).toEqual([]);
    });

    test('the image of an image volume is pulled from its registry', async () => {
      const archive = join(lifepod.dataDir, 'pulled.tar');
      const file = { type: 'file', path: 'greeting', mode: 0o644, content: 'from afar\n' } as const;
      await writeImageArchive(archive, 'example.com/pulled:1', [file], { env: [] });
      await registry.push(archive, 'pulled:1');
      const reference = `${registry.host}/pulled:1`;
      const app = { script: 'cat /i/greeting', volumeMounts: [at('i', '/i')] };
      expect(await output('pulling', [{ name: 'i', image: { reference } }], app)).toEqual(['from afar']);
      expect(await record.event('pulling', /Successfully pulled/)).toMatch(
        /^Normal Pulled: Successfully pulled image "\S+pulled:1" in [\d.]+m?s \([\d.]+m?s including waiting\)\. Image size: \d+ bytes\.$/,
      );
      expect(await lifepod.cliOk('image', 'rm', reference)).toBeDefined();
    });

    test('containers wait, with the reason in their status, while the image of a volume cannot be pulled', async () => {
      const app = [{ name: 'app', script: WAIT, volumeMounts: [at('i', '/i')] }];
      const absent = '127.0.0.1:1/none:1';
      await lifepod.apply(pod('never', { app, spec: { volumes: [volume('Never', absent)] } }));
      const waiting = await record.until('never', waitsFor('app', 'ErrImageNeverPull'));
      expect(statusOf(waiting, 'app').state?.waiting?.message).toBe(
        `Container image "${absent}" is not present with pull policy of Never`,
      );
      await lifepod.apply(pod('refused-pull', { app, spec: { volumes: [volume('Always', absent)] } }));
      await record.until('refused-pull', waitsFor('app', 'ErrImagePull'));
      const later = await record.until('refused-pull', waitsFor('app', 'ImagePullBackOff'));
      expect(statusOf(later, 'app').state?.waiting?.message).toMatch(
        new RegExp(`^Back-off pulling image "${absent}": ErrImagePull: .*`),
      );
      expect(await record.event('refused-pull', /Failed to pull/)).toContain(
        `Warning Failed: Failed to pull image "${absent}": `,
      );
      expect(record.events('refused-pull')).toContain(`Normal Pulling: Pulling image "${absent}"`);
      await deleteNow('never');
      await deleteNow('refused-pull');
    });
  });

  test('ConfigMaps, Secrets, tokens and Pod fields are files with the names and modes that the volume specifies', async () => {
    const apply = (kind: string, name: string, more: object): Promise<void> =>
      lifepod.apply({ apiVersion: 'v1', kind, metadata: { name }, ...more });
    const bytes = Buffer.from([0, 255, 1, 10]).toString('base64');
    await apply('ConfigMap', 'shapes', { data: { a: 'A\n' }, binaryData: { raw: bytes }, immutable: true });
    await apply('Secret', 'shapes', { stringData: { user: 'me', word: 'secret' } });
    const field = (path: string, fieldPath: string) => ({ path, fieldRef: { fieldPath } });
    const volumes = [
      {
        name: 'all',
        projected: {
          defaultMode: 0o440,
          sources: [
            { secret: { name: 'shapes', items: [{ key: 'user', path: 'who/user', mode: 0o400 }] } },
            { configMap: { name: 'shapes', items: [{ key: 'a', path: 'a' }] } },
            { downwardAPI: { items: [{ ...field('name', 'metadata.name'), mode: 0o404 }] } },
            { serviceAccountToken: { path: 'token' } },
            { configMap: { name: 'absent', optional: true } },
            { secret: { name: 'absent', optional: true } },
            { secret: { name: 'shapes', items: [{ key: 'none', path: 'none' }], optional: true } },
            {},
          ],
        },
      },
      { name: 'conf', configMap: { name: 'shapes' } },
      { name: 'key', secret: { secretName: 'shapes', defaultMode: 0o400, items: [{ key: 'word', path: 'w' }] } },
      {
        name: 'me',
        downwardAPI: {
          items: [
            field('annotations', 'metadata.annotations'),
            field('uid', 'metadata.uid'),
            field('namespace', 'metadata.namespace'),
            field('tier', "metadata.labels['tier']"),
            {
              path: 'memory',
              resourceFieldRef: { containerName: 'app', resource: 'limits.memory', divisor: '1Mi' },
            },
          ],
        },
      },
    ];
    const app = {
      name: 'app',
      script: `cd /all; find -L . -type f ! -path "*/..*" | sort | xargs stat -L -c "%n %a"; cat who/user a name; echo
        cd /conf; ls; od -An -tx1 raw; cd /key; ls; stat -L -c %a w; cat w; echo
        for n in namespace tier memory uid annotations; do cat /me/$n; echo; done`,
      resources: { limits: { memory: '65Mi' } },
      volumeMounts: ['all', 'conf', 'key', 'me'].map((name) => at(name, `/${name}`)),
    };
    const manifest = pod('shapes', {
      app: [app],
      labels: { tier: 'front' },
      spec: { restartPolicy: 'Never', volumes },
    });
    const metadata = { ...(manifest['metadata'] as object), annotations: { note: 'two\nlines', 'example.com/a': 'x' } };
    await lifepod.apply({ ...manifest, metadata });
    await record.until('shapes', ended('app'));
    const lines = (await lifepod.kubectlOk('logs', 'shapes')).trim().split('\n');
    expect(lines.slice(0, -2)).toEqual([
      './a 440',
      './name 404',
      './token 440',
      './who/user 400',
      'meA',
      'shapes',
      'a',
      'raw',
      ' 00 ff 01 0a',
      'w',
      '400',
      'secret',
      lifepod.namespace,
      'front',
      '65',
      record.now('shapes').metadata.uid ?? '',
    ]);
    expect(lines.slice(-2)).toEqual(['example.com/a="x"', 'note="two\\nlines"']);
    await deleteNow('shapes');
  });

  test('processes with the fsGroup can read the files of ConfigMaps, Secrets, fields and tokens, and write to an emptyDir', async () => {
    await lifepod.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'grouped' }, data: { k: 'v' } });
    await lifepod.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'grouped' }, stringData: { k: 'v' } });
    const items = [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }];
    const lines = await output(
      'group',
      [
        { name: 'e', emptyDir: {} },
        { name: 'd', downwardAPI: { items, defaultMode: 0o400 } },
        { name: 'c', configMap: { name: 'grouped' } },
        { name: 's', secret: { secretName: 'grouped', defaultMode: 0o400 } },
        {
          name: 't',
          projected: {
            sources: [{ serviceAccountToken: { path: 'token', audience: 'vault', expirationSeconds: 600 } }],
          },
        },
      ],
      {
        script: `touch /e/f; stat -L -c "%n %u %g %a" /e /e/f /d /d/name /t/token /c /c/k /s /s/k
          payload=$(cut -d. -f2 /t/token | tr _- /+); echo "$payload==" | base64 -d 2>/dev/null; echo`,
        volumeMounts: ['e', 'd', 't', 'c', 's'].map((name) => at(name, `/${name}`)),
      },
      { securityContext: { runAsUser: 77, fsGroup: 88 } },
    );
    expect(lines.slice(0, 9)).toEqual([
      '/e 0 88 2777',
      '/e/f 77 88 644',
      '/d 0 88 2777',
      '/d/name 0 88 440',
      '/t/token 77 88 640',
      '/c 0 88 2777',
      '/c/k 0 88 644',
      '/s 0 88 2777',
      '/s/k 0 88 440',
    ]);
    const claims = JSON.parse(/^\{.*\}/.exec(lines[9] ?? '')?.[0] ?? '{}');
    expect(claims).toMatchObject({ aud: ['vault'], 'kubernetes.io': { pod: { name: 'group' } } });
    expect(claims.exp - claims.iat).toBe(600);
  });
});

import { delimiter, dirname } from 'node:path';
import { describe, expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { containerLines } from '../../src/cli/describe/describe-container.ts';
import { tabColumns } from '../../src/cli/describe/tab-columns.ts';
import { type CommandResult, runCommand } from '../../src/platform/processes.ts';
import { type ClientCommand, startClient } from '../support/client-command.ts';
import { LAUNCHER, startLifepod } from '../support/lifepod.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { ended, isReady, restarted, runs, signalFirst } from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

const finished = (name: string): Promise<void> => lifepod.delete('pod', name, '--now', '--wait=false');
const logs = (...args: string[]) => lifepod.cli('logs', ...args);
const follow = (...args: string[]): ClientCommand => startClient(lifepod, LAUNCHER, ['logs', ...args]);

describe('lifepod logs', () => {
  test.beforeAll(async () => {
    await lifepod.apply(
      pod('kinds', {
        init: [
          { name: 'first', script: 'echo first 1; echo first 2' },
          { name: 'second', script: 'echo second' },
        ],
        app: [
          { name: 'app', script: `echo app 1; echo app 2; echo app 3; ${WAIT}` },
          { name: 'web', script: `echo web; ${WAIT}` },
        ],
      }),
    );
    await record.until('kinds', isReady);
    await lifepod.kubectlOk(
      'debug',
      'kinds',
      '--image=busybox:1.28',
      '--profile=general',
      '-c',
      'shell',
      '--',
      'echo',
      'shell',
    );
    await record.until('kinds', ended('shell'));
  });

  test.each(['app', 'web', 'first', 'second', 'shell'])(
    'lifepod logs -c %s prints the same output as kubectl',
    async (container) => {
      for (const options of [[], ['--tail=1'], ['--prefix'], ['--timestamps'], ['--limit-bytes=3'], ['--since=1h']]) {
        const own = await logs('kinds', '-c', container, ...options);
        const kubectl = await lifepod.kubectl('logs', 'kinds', '-c', container, ...options);
        expect(own).toEqual(kubectl);
        expect(own.code).toBe(0);
        expect(own.stdout).not.toBe('');
      }
    },
  );

  test('lifepod logs without -c prints the container in the annotation default-container, else the first app container, with a message', async () => {
    const own = await logs('pod/kinds');
    expect(own).toEqual(await lifepod.kubectl('logs', 'kinds'));
    expect(own.stderr).toBe('Defaulted container "app" out of: app, web, shell (ephem), first (init), second (init)\n');
    expect(await logs('kinds', 'web')).toEqual({ code: 0, stdout: 'web\n', stderr: '' });
    const annotations = { 'kubectl.kubernetes.io/default-container': 'web' };
    await lifepod.apply({
      ...pod('chosen', {
        app: [
          { name: 'app', script: WAIT },
          { name: 'web', script: 'echo web' },
        ],
      }),
      metadata: { name: 'chosen', annotations },
    });
    await record.until('chosen', ended('web'));
    expect(await logs('chosen')).toEqual({ code: 0, stdout: 'web\n', stderr: '' });
    await finished('chosen');
  });

  test('lifepod logs --all-containers prints init, app and ephemeral containers in this order, each line with the name of its container', async () => {
    const lines = [
      '[first] first 1',
      '[first] first 2',
      '[second] second',
      '[app] app 1',
      '[app] app 2',
      '[app] app 3',
    ];
    const { stdout, stderr, code } = await logs('kinds', '--all-containers');
    expect(stdout).toBe([...lines, '[web] web', '[shell] shell', ''].join('\n'));
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
    const own = await logs('kinds', '--all-containers', '--prefix');
    expect(own.stdout).toBe(stdout.replaceAll(/^\[/gm, '[pod/kinds/'));
    expect((await logs('kinds', '--all-containers=true', '--prefix=false', '--tail=1')).stdout).toBe(
      'first 2\nsecond\napp 3\nweb\nshell\n',
    );
  });

  test('lifepod logs prints the name of each container in its own color in a terminal, and no colors if NO_COLOR is set', async () => {
    const line = `${LAUNCHER} logs kinds --all-containers --tail=1 --kubeconfig ${lifepod.kubeconfig}`;
    const inTerminal = async (env: NodeJS.ProcessEnv): Promise<string> =>
      (await runCommand('script', ['-qefc', line, '/dev/null'], { env: { ...process.env, NO_COLOR: '', ...env } }))
        .stdout;
    const text = await inTerminal({});
    const colors = [...text.matchAll(/^\u001b\[(\d+)m\[\w+\] \u001b\[0m\w/gm)].map(([, color]) => color);
    expect(new Set(colors).size).toBe(5);
    expect(await inTerminal({ NO_COLOR: '1' })).not.toContain('\u001b');
  });

  test('lifepod logs reports a missing Pod or container, and what to do', async () => {
    const asKubectl = async (...args: string[]): Promise<object> => {
      const { code, stdout, stderr } = await lifepod.kubectl('logs', ...args);
      const message = stderr.replace(/^(error: )?(error from server \(\w+\): )?/i, '');
      return { code, stdout, stderr: `lifepod: ${message}` };
    };
    const none = await logs('none');
    expect(none).toMatchObject({ code: 1, stdout: '' });
    expect(none.stderr).toMatch(/^lifepod: no Pod none in namespace \S+, and no record of one: .*\n$/);
    expect((await logs('kinds', '-n', 'kube-system')).stderr).toMatch(
      /^lifepod: no Pod kinds in namespace kube-system, and no record of one, but in namespace \S+: /,
    );
    const wrong = await logs('kinds', '-c', 'none');
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain('lifepod: container none is not valid for pod kinds out of: app, ');
    expect(wrong.stderr).toContain('out of: app, web, shell (ephem), first (init), second (init)\n');
    const both = ['kinds', '-c', 'app', '--all-containers'];
    expect(await logs(...both)).toEqual(await asKubectl(...both));
    const twice = await logs('kinds', 'app', '-c', 'app');
    expect(twice.stderr).toBe('lifepod: only one of -c or an inline [CONTAINER] arg is allowed\n');
    const previous = ['kinds', '-c', 'app', '--previous'];
    const refused = await logs(...previous);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    const { stderr } = (await asKubectl(...previous)) as { stderr: string };
    expect(refused.stderr.startsWith(`${stderr.trim()}: 'lifepod logs kinds -n ${lifepod.namespace} -c app `)).toBe(
      true,
    );
    expect((await logs('service/kinds')).stderr).toBe('lifepod: "service/kinds" is not a Pod: give POD or pod/POD\n');
  });

  test('lifepod logs --all-containers reports a container that waits for its image, and prints the logs of the other containers', async () => {
    const app = [
      { name: 'app', script: 'echo app' },
      { name: 'none', script: '', image: '127.0.0.1:1/none:1' },
    ];
    await lifepod.apply(pod('imageless', { app, spec: { restartPolicy: 'Never' } }));
    await record.until('imageless', ended('app'));
    const { stdout, stderr, code } = await logs('imageless', '--all-containers');
    expect(stdout).toBe('[app] app\n');
    expect(stderr).toMatch(/^lifepod: container "none" in pod "imageless" is waiting to start: /);
    expect(code).toBe(1);
    await finished('imageless');
  });

  test('lifepod logs --previous prints the log of the run before the last restart', async () => {
    await lifepod.apply(
      pod('again', {
        app: [
          { name: 'app', script: `cat /proc/sys/kernel/random/uuid; ${WAIT}` },
          { name: 'web', script: WAIT },
        ],
      }),
    );
    await record.until('again', isReady);
    const before = (await logs('again', 'app')).stdout;
    await signalFirst(lifepod, 'again', 'app', 'TERM');
    await record.until('again', (seen) => restarted('app', 1)(seen) && runs('app')(seen));
    expect((await logs('again', 'app', '-p')).stdout).toBe(before);
    expect((await logs('again', 'app')).stdout).not.toBe(before);
    expect((await logs('again', '--all-containers', '--previous')).stdout).toBe(`[app] ${before}`);
    await finished('again');
  });
});

describe.concurrent('lifepod logs -f', () => {
  test('lifepod logs -f of one container ends when the container exits', async () => {
    await lifepod.apply(
      pod('one', {
        app: [{ name: 'app', script: `echo begun; ${WAIT}; echo over` }],
        spec: { restartPolicy: 'Never' },
      }),
    );
    await record.until('one', runs('app'));
    const following = follow('one', '-f');
    await following.printed(/begun/);
    await signalFirst(lifepod, 'one', 'app', 'TERM');
    expect(await following.ended).toMatchObject({ code: 0, stdout: 'begun\n', stderr: '' });
    await finished('one');
  });

  test('lifepod logs -f waits for a container that has not started', async () => {
    const gate = 'until [ -e /tmp/go ]; do sleep 0.1; done';
    await lifepod.apply(
      pod('later', {
        init: [{ name: 'init', script: gate }],
        app: [{ name: 'app', script: 'echo here' }],
        spec: { restartPolicy: 'Never' },
      }),
    );
    await record.until('later', runs('init'));
    const following = follow('later', '-f');
    await following.printed(/Waiting for app to start/);
    // The container ends when the file exists, and may kill touch before it has exited.
    await lifepod.kubectl('exec', 'later', '-c', 'init', '--', 'touch', '/tmp/go');
    expect(await following.ended).toMatchObject({ code: 0, stdout: 'here\n' });
    await finished('later');
  });

  test('lifepod logs -f --all-containers follows each container and each restart until the Pod has ended', async () => {
    const gate = 'until [ -e /tmp/go ]; do sleep 0.1; done';
    const init = [
      { name: 'a', script: `echo a in; ${gate}; echo a out` },
      ...['b', 'c'].map((name) => ({ name, script: `echo ${name} in; echo ${name} out` })),
    ];
    const app = [
      { name: 'app', script: `trap 'echo app out; exit 0' TERM; echo app in; while :; do sleep 3600 & wait $!; done` },
      { name: 'web', script: `trap 'echo web out; exit 0' TERM; echo web in; while :; do sleep 3600 & wait $!; done` },
    ];
    await lifepod.apply(pod('life', { init, app }));
    await record.until('life', runs('a'));
    const following = follow('life', '-f', '--all-containers');
    await following.printed(/\[a\] a in/);
    // The container may end, and kill touch, before touch has exited.
    await lifepod.kubectl('exec', 'life', '-c', 'a', '--', 'touch', '/tmp/go');
    await following.printed(/\[web\] web in/);
    await following.printed(/\[app\] app in/);
    await signalFirst(lifepod, 'life', 'web', 'TERM');
    await following.printed(/\[web\] web out\n(.*\n)*\[web\] web in/);
    await lifepod.kubectlOk(
      'debug',
      'life',
      '--image=busybox:1.28',
      '--profile=general',
      '-c',
      'shell',
      '--',
      'echo',
      'shell',
    );
    await following.printed(/\[shell\] shell/);
    await lifepod.delete('pod', 'life');
    const { stdout, stderr, code } = await following.ended;
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
    const lines = stdout.trimEnd().split('\n');
    const early = ['a', 'b', 'c'].flatMap((name) => [`[${name}] ${name} in`, `[${name}] ${name} out`]);
    expect(lines.slice(0, 6)).toEqual(early);
    const of = (name: string): string[] => lines.filter((line) => line.startsWith(`[${name}] `));
    expect(of('app')).toEqual(['[app] app in', '[app] app out']);
    expect(of('web')).toEqual(['[web] web in', '[web] web out', '[web] web in', '[web] web out']);
    expect(of('shell')).toEqual(['[shell] shell']);
  });

  test('lifepod logs -f --all-containers of a Pod that has ended prints all logs and ends', async () => {
    const app = [
      { name: 'app', script: 'echo app' },
      { name: 'web', script: 'echo web; exit 3' },
    ];
    await lifepod.apply(
      pod('over', { init: [{ name: 'init', script: 'echo init' }], app, spec: { restartPolicy: 'Never' } }),
    );
    await record.until('over', ({ status }) => status?.phase === 'Failed');
    expect(await logs('over', '-f', '--all-containers')).toEqual({
      code: 0,
      stdout: '[init] init\n[app] app\n[web] web\n',
      stderr: '',
    });
    await finished('over');
  });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends lifepod logs -f without a message', async (signal, code) => {
    const name = `stopped-${code}`;
    await lifepod.apply(pod(name, { app: [{ name: 'app', script: `echo on; ${WAIT}` }] }));
    await record.until(name, isReady);
    for (const options of [[], ['--all-containers']]) {
      const following = follow(name, '-f', ...options);
      await following.printed(/on/);
      following.kill(signal);
      expect(await following.ended).toMatchObject({ code, stderr: '' });
    }
    await finished(name);
  });

  test('lifepod logs -f ends without a message when the reader of its output has exited', async () => {
    await lifepod.apply(pod('much', { app: [{ name: 'app', script: 'yes' }] }));
    await record.until('much', isReady);
    const line = `${LAUNCHER} logs much -f --kubeconfig ${lifepod.kubeconfig} | head -n 2`;
    expect(await runCommand('sh', ['-c', line])).toEqual({ code: 0, stdout: 'y\ny\n', stderr: '' });
    await finished('much');
  });

  test('lifepod logs -f fails when the connection to the API server is lost, and reports this', async () => {
    const own = await startLifepod();
    try {
      await own.apply(pod('left', { app: [{ name: 'app', script: `echo on; ${WAIT}` }] }));
      await own.wait('--for=condition=Ready', 'pod/left');
      const following = startClient(own, LAUNCHER, ['logs', 'left', '-f', '--all-containers']);
      await following.printed(/on/);
      await own.kill('SIGKILL');
      const { code, stderr } = await following.ended;
      expect(stderr).toMatch(/^lifepod: the connection to the API server was lost: /);
      expect(code).toBe(1);
    } finally {
      await own.stop();
    }
  });
});

describe.concurrent('lifepod describe pod', () => {
  test('lifepod describe of a Pod without defer containers prints the same output as kubectl', async () => {
    await lifepod.apply(pod('plain', { init: [{ name: 'init', script: 'true' }] }));
    await record.until('plain', isReady);
    const steady = (text: string): string => text.replaceAll(/ {2}\d+s .*$/gm, '');
    const own = await lifepod.cliOk('describe', 'pod', 'plain');
    expect(steady(own)).toBe(steady(await lifepod.kubectlOk('describe', 'pod', 'plain')));
    expect(steady(await lifepod.cliOk('describe', 'pod/plain', '-n', lifepod.namespace))).toBe(steady(own));
    await finished('plain');
  });

  test('lifepod describe prints all fields of a container in the format of kubectl', async () => {
    await lifepod.kubectlOk('create', 'configmap', 'settings', '--from-literal=level=3');
    await lifepod.kubectlOk('create', 'secret', 'generic', 'keys', '--from-literal=k=v');
    const rich = {
      name: 'rich',
      script: 'true\nexit 0',
      args: ['x', 'y'],
      ports: [{ containerPort: 80 }, { containerPort: 53, protocol: 'UDP', name: 'dns' }],
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      resources: { limits: { memory: '64Mi', cpu: '1' }, requests: { cpu: '50m' } },
      envFrom: [{ configMapRef: { name: 'settings' } }, { prefix: 'S_', secretRef: { name: 'keys', optional: true } }],
      env: [
        { name: 'PLAIN', value: 'one\ntwo' },
        { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        { name: 'SPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
        { name: 'UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
        { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
        { name: 'LABEL', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
        { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
        { name: 'MEMORY', valueFrom: { resourceFieldRef: { resource: 'requests.memory', divisor: '1Mi' } } },
        { name: 'KEY', valueFrom: { secretKeyRef: { name: 'keys', key: 'k' } } },
        { name: 'LEVEL', valueFrom: { configMapKeyRef: { name: 'settings', key: 'level', optional: true } } },
      ],
      volumeMounts: [
        { name: 'work', mountPath: '/work', subPath: 'a b' },
        { name: 'data', mountPath: '/data', readOnly: true },
      ],
    };
    const bare = {
      name: 'bare',
      script: 'true',
      env: [{ name: 'ANY', valueFrom: { resourceFieldRef: { resource: 'limits.memory' } } }],
    };
    const volumes = ['work', 'data'].map((name) => ({ name, emptyDir: {} }));
    const probe = { periodSeconds: 5 };
    const app = [
      { name: 'exec', script: WAIT, livenessProbe: { ...probe, exec: { command: ['true', '-x'] } } },
      {
        name: 'http',
        script: WAIT,
        livenessProbe: { ...probe, initialDelaySeconds: 600, httpGet: { path: '/a/b', port: 80 } },
      },
      {
        name: 'tcp',
        script: WAIT,
        livenessProbe: { ...probe, initialDelaySeconds: 600, tcpSocket: { port: 'web' } },
        ports: [{ name: 'web', containerPort: 80 }],
      },
      {
        name: 'grpc',
        script: WAIT,
        livenessProbe: { ...probe, initialDelaySeconds: 600, grpc: { port: 80, service: 's' } },
      },
    ];
    await lifepod.apply(
      pod('told', {
        init: [rich, bare],
        app,
        labels: { app: 'told' },
        spec: { volumes, automountServiceAccountToken: false },
      }),
    );
    await record.until('told', isReady);
    const [seen, text] = [record.now('told'), await lifepod.kubectlOk('describe', 'pod', 'told')];
    expect(text).toContain(described('Init Containers:', seen, 'initContainers', 'initContainerStatuses'));
    expect(text).toContain(described('Containers:', seen, 'containers', 'containerStatuses'));
    await finished('told');
  });

  test('lifepod describe of a missing Pod or of another kind fails with the reason', async () => {
    const none = await lifepod.cli('describe', 'pod', 'none');
    expect(none).toMatchObject({ code: 1, stdout: '' });
    expect(none.stderr).toMatch(/^lifepod: no Pod none in namespace \S+, and no record of one: /);
    const unnamed = await lifepod.cli('describe', 'pods');
    expect(unnamed.code).toBe(1);
    expect(unnamed.stderr).toMatch(/^lifepod: (name one of the Pods in|there is no Pod in) namespace /);
    const node = await lifepod.cli('describe', 'node', 'node-1');
    expect(node.code).toBe(1);
    expect(node.stderr).toContain("lifepod describes Pods only: give 'pod NAME' or pod/NAME");
    const two = await lifepod.cli('describe', 'pod/kinds', 'other');
    expect(two.stderr).toContain("lifepod describes one Pod: give 'pod NAME' or pod/NAME, not 'pod/kinds other'");
  });
});

describe.concurrent('defer containers', () => {
  const GATE = 'until [ -e /tmp/go ]; do sleep 0.1; done';
  const deferring = (
    name: string,
    entries: { name: string; script: string; [field: string]: unknown }[],
    options: Parameters<typeof pod>[1] = {},
  ): Record<string, unknown> =>
    pod(name, {
      ...options,
      spec: {
        deferContainers: entries.map(({ script, ...entry }) => ({
          image: 'busybox:1.28',
          command: ['sh', '-c', script],
          ...entry,
        })),
        ...options.spec,
      },
    });
  const entry = (name: string, state: 'running' | 'terminated') => (seen: Pod) =>
    seen.status?.deferContainerStatuses?.find((status) => status.name === name)?.state?.[state] !== undefined;
  const release = (name: string, container: string): Promise<CommandResult> =>
    lifepod.kubectl('exec', name, '-c', container, '--', 'touch', '/tmp/go');

  test('lifepod logs --all-containers prints defer containers that have started, after app containers and before ephemeral containers', async () => {
    await lifepod.apply(
      deferring(
        'batch',
        [
          { name: 'upload', script: `echo upload; ${GATE}` },
          { name: 'sweep', script: 'echo sweep', trigger: 'PostExit' },
        ],
        {
          init: [{ name: 'init', script: 'echo init' }],
          app: [{ name: 'app', script: `echo app; ${GATE}` }],
          spec: { restartPolicy: 'Never' },
        },
      ),
    );
    await record.until('batch', runs('app'));
    await lifepod.kubectlOk(
      'debug',
      'batch',
      '--image=busybox:1.28',
      '--profile=general',
      '-c',
      'shell',
      '--',
      'echo',
      'shell',
    );
    await record.until('batch', ended('shell'));
    const allLogs = async (): Promise<string> => lifepod.cliOk('logs', 'batch', '--all-containers');
    expect(await allLogs()).toBe('[init] init\n[app] app\n[shell] shell\n');
    const waits = await logs('batch', '-c', 'upload');
    expect(waits).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^lifepod: defer container upload in pod batch has not run: its turn comes when the Pod terminates; 'lifepod logs batch -n \S+ -c upload -f .*' waits for it\n$/,
      ),
    });
    await release('batch', 'app');
    await record.until('batch', entry('upload', 'running'));
    expect(await allLogs()).toBe('[init] init\n[app] app\n[upload] upload\n[shell] shell\n');
    expect((await logs('batch', 'sweep')).stderr).toContain('is waiting to start: PendingDefer; ');
    await release('batch', 'upload');
    await record.until('batch', ({ status }) => status?.phase === 'Succeeded');
    expect(await allLogs()).toBe('[init] init\n[app] app\n[upload] upload\n[sweep] sweep\n[shell] shell\n');
    expect(await lifepod.cliOk('logs', 'batch', '-c', 'sweep', '--prefix')).toBe('[pod/batch/sweep] sweep\n');
    expect((await logs('batch')).stderr).toBe(
      'Defaulted container "app" out of: app, shell (ephem), init (init), upload (defer), sweep (defer)\n',
    );
    expect((await logs('batch', '-c', 'none')).stderr).toContain('sweep (defer)\n');
    await finished('batch');
  });

  test('lifepod logs -f prints all lines up to the last line of the last defer container while the Pod is deleted', async () => {
    // The Pod must not end before the command has opened the log of each container.
    const gate = 'until [ -e /tmp/go ]; do sleep 0.1; done';
    await lifepod.apply(
      deferring(
        'leaving',
        [
          { name: 'first', script: 'echo first' },
          { name: 'second', script: 'echo second', trigger: 'PostExit' },
          { name: 'third', script: `echo third; ${gate}; echo gone`, trigger: 'PostExit' },
        ],
        { app: [{ name: 'app', script: `echo app; ${WAIT}` }] },
      ),
    );
    await record.until('leaving', isReady);
    const all = follow('leaving', '-f', '--all-containers');
    const one = follow('leaving', '-f', '-c', 'third');
    const plugin = startClient(lifepod, 'kubectl', ['lifepod', 'logs', 'leaving', '-f', '-c', 'second']);
    await Promise.all([all.printed(/app/), one.printed(/Waiting for third/), plugin.printed(/Waiting for second/)]);
    await lifepod.delete('pod', 'leaving', '--wait=false');
    await Promise.all([all.printed(/second\n(.*\n)*.*third/), one.printed(/third/), plugin.printed(/second/)]);
    await lifepod.kubectl('exec', 'leaving', '-c', 'third', '--', 'touch', '/tmp/go');
    const lines = ['[app] app', '[first] first', '[second] second', '[third] third', '[third] gone', ''];
    expect(await all.ended).toEqual({ code: 0, stdout: lines.join('\n'), stderr: '' });
    expect(await one.ended).toEqual({ code: 0, stdout: 'third\ngone\n', stderr: 'Waiting for third to start\n' });
    expect(await plugin.ended).toEqual({ code: 0, stdout: 'second\n', stderr: 'Waiting for second to start\n' });
  });

  test('lifepod logs -f -c of a defer container that never starts fails with a message when the Pod is deleted', async () => {
    await lifepod.apply(deferring('forced', [{ name: 'never', script: 'echo never' }]));
    await record.until('forced', isReady);
    const following = follow('forced', '-f', '-c', 'never');
    await following.printed(/Waiting for never/);
    await lifepod.delete('pod', 'forced', '--force', '--grace-period=0');
    expect(await following.ended).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^Waiting for never to start\nlifepod: container never in pod forced has never started: 'lifepod why forced .*' shows why\n$/,
      ),
    });
  });

  test('lifepod logs -f -c of a defer container with retries prints every attempt, and logs -p prints the previous attempt', async () => {
    const script =
      'echo attempt; [ -e /work/tried ] && until [ -e /tmp/go ]; do sleep 0.1; done || { touch /work/tried; exit 1; }';
    await lifepod.apply(
      deferring(
        'stubborn',
        [{ name: 'again', script, restartPolicy: 'OnFailure', volumeMounts: [{ name: 'work', mountPath: '/work' }] }],
        { spec: { volumes: [{ name: 'work', emptyDir: {} }] } },
      ),
    );
    await record.until('stubborn', isReady);
    const following = follow('stubborn', '-f', '-c', 'again');
    await following.printed(/Waiting for again/);
    await lifepod.delete('pod', 'stubborn', '--wait=false');
    await following.printed(/attempt\nattempt/);
    expect(await lifepod.cliOk('logs', 'stubborn', '-c', 'again', '-p')).toBe('attempt\n');
    await release('stubborn', 'again');
    expect(await following.ended).toMatchObject({ code: 0, stdout: 'attempt\nattempt\n' });
  });

  test('lifepod describe prints a section of defer containers before and during termination, and everything else as kubectl does', async () => {
    await lifepod.apply(
      deferring(
        'shard',
        [
          { name: 'hand-over', script: `echo; ${GATE}`, timeoutSeconds: 20 },
          { name: 'sweep', script: 'exit 3', trigger: 'PostExit', restartPolicy: 'Never' },
        ],
        {
          spec: {
            restartPolicy: 'Never',
            automountServiceAccountToken: false,
            deferContainerGracePeriodExtensionInterval: 10,
            deferContainerGracePeriodExtensionCount: 3,
          },
        },
      ),
    );
    await record.until('shard', isReady);
    const sectionOf = async (): Promise<string> => {
      const own = await lifepod.cliOk('describe', 'pod', 'shard');
      const found = /^Containers:\n(?: .*\n)*(Defer Containers:\n(?:.*\n)*?)Conditions:\n/m.exec(own)?.[1] ?? '';
      const kubectl = await lifepod.kubectlOk('describe', 'pod', 'shard');
      const steady = (text: string): string => text.replace(/^Events:\n(.*\n)*/m, '').replace(/\(lasts .*\)/, '');
      expect(steady(own.replace(found, ''))).toBe(steady(kubectl));
      return found;
    };
    const before = await sectionOf();
    expect(before).toMatch(
      /^ {2}hand-over:\n(?: {4}.*\n)* {4}Trigger: +PreExit\n {4}Restart Policy: +Never\n {4}Timeout: +20s\n/m,
    );
    expect(before).toMatch(
      /^ {2}sweep:\n(?: {4}.*\n)* {4}Trigger: +PostExit\n {4}Restart Policy: +Never\n {4}Timeout: +<none>\n/m,
    );
    expect(before.match(/^ {6}Reason: +PodRunning$/gm)).toHaveLength(2);
    expect(before).toMatch(/^Grace Period Extension: {2}10s, at most 3 times\n$/m);
    expect(before).toMatch(/^Effective Requests: +<none>\nEffective Limits: +<none>\n/m);
    expect(before).toMatch(/^Post Exit Grace Period: {2}at most 15s \(default\)\n/m);
    expect(before).not.toContain('Termination:');

    await lifepod.delete('pod', 'shard', '--wait=false');
    await record.until('shard', entry('hand-over', 'running'));
    const during = await sectionOf();
    expect(during).toMatch(/^ {4}Container ID: +containerd:\/\/[0-9a-f]{64}\n/m);
    expect(during).toMatch(/^ {4}State: +Running\n {6}Started: /m);
    expect(during).toMatch(/^ {6}Reason: +PendingDefer$/m);
    const time = String.raw`\w{3}, .*\n`;
    const stages = `  Started: +${time}  PreExit Deadline: +${time}  Deadline: +${time}  Turn: +hand-over, since ${time}`;
    expect(during).toMatch(new RegExp(`\nTermination:\n  Reason: +Deleted\n${stages}$`));
    const plugin = startClient(lifepod, 'kubectl', ['lifepod', 'describe', 'pod', 'shard']);
    expect((await plugin.ended).stdout).toContain(during);
    await release('shard', 'hand-over');
    await record.gone('shard');
  });
});

function described(
  title: string,
  seen: Pod,
  list: 'initContainers' | 'containers',
  statuses: 'initContainerStatuses' | 'containerStatuses',
): string {
  const lines = (seen.spec?.[list] ?? []).flatMap((container) =>
    containerLines(
      container,
      seen.status?.[statuses]?.find(({ name }) => name === container.name),
      [],
      seen,
    ),
  );
  return tabColumns([title, ...lines]).join('\n');
}

describe.concurrent('kubectl lifepod', () => {
  const plugin = (args: string[], env: NodeJS.ProcessEnv = {}) =>
    runCommand('kubectl', ['lifepod', ...args], {
      env: {
        ...process.env,
        KUBECONFIG: lifepod.kubeconfig,
        HOME: lifepod.dataDir,
        PATH: `${dirname(LAUNCHER)}${delimiter}${process.env['PATH']}`,
        ...env,
      },
    });

  test('kubectl lifepod uses the server and the namespace of the current context', async () => {
    await lifepod.kubectlOk('create', 'namespace', 'team');
    await lifepod.kubectlInput(
      JSON.stringify(pod('here', { app: [{ name: 'app', script: `echo team; ${WAIT}` }] })),
      'apply',
      '-n',
      'team',
      '-f',
      '-',
    );
    await lifepod.wait('-n', 'team', '--for=condition=Ready', 'pod/here');
    expect(await plugin(['logs', 'here', '-n', 'team'])).toEqual({ code: 0, stdout: 'team\n', stderr: '' });
    expect((await plugin(['describe', 'pod', 'here', '-n', 'team'])).stdout).toMatch(
      /^Name: +here\nNamespace: +team\n/,
    );
    expect((await plugin(['logs', 'here'])).stderr).toContain(
      `no Pod here in namespace ${lifepod.namespace}, and no record of one, but in namespace team: 'kubectl lifepod why here -n team`,
    );

    // The user's kubeconfig is listed before the engine's. It adds a context with the namespace team.
    const own = `${lifepod.dataDir}/own-kubeconfig`;
    const [cluster, user] = await Promise.all(
      ['cluster', 'user'].map((field) =>
        lifepod.kubectlOk('config', 'view', '-o', `jsonpath={.contexts[0].context.${field}}`),
      ),
    );
    const set = [`--cluster=${cluster}`, `--user=${user}`, '--namespace=team'];
    await lifepod.kubectlOk('config', '--kubeconfig', own, 'set-context', 'team', ...set);
    const KUBECONFIG = `${own}${delimiter}${lifepod.kubeconfig}`;
    expect((await plugin(['logs', 'here', '--context', 'team'], { KUBECONFIG })).stdout).toBe('team\n');
    await lifepod.kubectlOk('config', '--kubeconfig', own, 'use-context', 'team');
    expect((await plugin(['logs', 'here'], { KUBECONFIG })).stdout).toBe('team\n');
    expect((await plugin(['describe', 'pod', 'here'], { KUBECONFIG })).stdout).toContain('Namespace:        team\n');
    await lifepod.delete('namespace', 'team', '--wait=false');
  });

  test('kubectl lifepod runs every lifepod command and returns its exit code', async () => {
    expect((await plugin(['version'])).stdout).toMatch(/^lifepod \d/);
    expect(await plugin(['logs', 'none'])).toMatchObject({ code: 1 });
    expect((await plugin(['--help'])).stdout).toMatch(/^Usage: kubectl lifepod /);
  });

  test('kubectl lifepod without a running engine fails and names the options that select a server', async () => {
    const { code, stderr } = await plugin(['logs', 'none'], { KUBECONFIG: '', HOME: '/nonexistent' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^lifepod is not running in .* or name a (?:--data-dir or )?--kubeconfig\n$/);
  });
});

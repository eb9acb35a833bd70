import { writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { readTextIfPresent } from '../../src/platform/files.ts';
import { type CommandResult, runCommand } from '../../src/platform/processes.ts';
import { KUBECTL } from '../support/kubectl.ts';
import { LAUNCHER } from '../support/lifepod.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { condition, inPhase, isReady, runs, waitsFor } from '../support/pods.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

const NO_IMAGE = '127.0.0.1:1/none:1';
const app = (more: object): object => ({ app: [{ name: 'app', script: WAIT, ...more }] });
const once = (script: string): object => ({ app: [{ name: 'app', script }] });

/** With bin/ on the PATH, as for a user. */
const plugin = (kubeconfig: string, ...args: string[]): Promise<CommandResult> =>
  runCommand(KUBECTL, ['lifepod', ...args], {
    env: {
      ...process.env,
      KUBECONFIG: kubeconfig,
      HOME: lifepod.dataDir,
      PATH: [dirname(LAUNCHER), process.env['PATH']].join(delimiter),
    },
    signal: AbortSignal.timeout(120_000),
  });

interface Shown {
  healthy: boolean;
  troubles: { kind: string; namespace: string; name: string; reason: string; message: string; command: string }[];
  unread: string[];
}

async function applySickPods(): Promise<void> {
  const probe = { exec: { command: ['cat', '/none'] }, periodSeconds: 1, timeoutSeconds: 10 };
  await Promise.all(
    [
      pod('well', app({})),
      pod('unready', app({ readinessProbe: probe })),
      pod('imageless', app({ image: NO_IMAGE })),
      pod('never', app({ image: 'example.com/none:1', imagePullPolicy: 'Never' })),
      pod('misnamed', app({ image: 'Bad:Name' })),
      pod('first-imageless', { init: [{ name: 'first', script: ':', image: NO_IMAGE }], ...app({}) }),
      pod('entry-imageless', { ...app({}), defer: [{ name: 'bye', script: ':', image: NO_IMAGE }] }),
      pod('crashing', once('exit 3')),
      pod('failed', { ...once('exit 4'), spec: { restartPolicy: 'Never' } }),
      pod('unsettled', app({ envFrom: [{ configMapRef: { name: 'none' } }] })),
      pod('huge', app({ resources: { requests: { cpu: '1000' } } })),
      pod('unmounted', {
        ...app({ volumeMounts: [{ name: 'v', mountPath: '/v' }] }),
        spec: { volumes: [{ name: 'v', configMap: { name: 'none' } }] },
      }),
      pod('retrying', {
        ...app({}),
        spec: { terminationGracePeriodSeconds: 300 },
        defer: [{ name: 'bye', script: 'exit 5', restartPolicy: 'OnFailure' }],
      }),
    ].map((each) => lifepod.apply(each)),
  );
  await record.until('retrying', isReady);
  await lifepod.delete('pod', 'retrying', '--wait=false');
}

async function untilSick(): Promise<void> {
  await Promise.all([
    record.until('well', isReady),
    record.until('unready', runs('app')).then(() => record.event('unready', /Unhealthy/)),
    record.until('imageless', waitsFor('app', 'ErrImagePull', 'ImagePullBackOff')),
    record.until('never', waitsFor('app', 'ErrImageNeverPull')),
    record.until('misnamed', waitsFor('app', 'InvalidImageName')),
    record.until('first-imageless', waitsFor('first', 'ErrImagePull', 'ImagePullBackOff')),
    record.until(
      'entry-imageless',
      (each) => isReady(each) && waitsFor('bye', 'ErrImagePull', 'ImagePullBackOff')(each),
    ),
    record.until('crashing', waitsFor('app', 'CrashLoopBackOff')),
    record.until('failed', inPhase('Failed')),
    record.until('unsettled', waitsFor('app', 'CreateContainerConfigError')),
    record.until('huge', (each) => condition(each, 'PodScheduled')?.status === 'False'),
    record.event('unmounted', /FailedMount/),
    record.until('retrying', waitsFor('bye', 'CrashLoopBackOff')),
  ]);
}

/** The user may read the Pods of the namespace, but no Nodes. */
async function viewerKubeconfig(): Promise<string> {
  const { namespace } = lifepod;
  await lifepod.kubectlOk('create', 'serviceaccount', 'viewer');
  await lifepod.kubectlOk('create', 'role', 'pods', '--verb=get,list', '--resource=pods');
  await lifepod.kubectlOk('create', 'rolebinding', 'viewer', '--role=pods', `--serviceaccount=${namespace}:viewer`);
  const token = (await lifepod.kubectlOk('create', 'token', 'viewer')).trim();
  const config = parse(readTextIfPresent(lifepod.kubeconfig) ?? '') as { users: object[] };
  const [user] = config.users;
  const path = join(lifepod.dataDir, `${namespace}-viewer`);
  writeFileSync(path, stringify({ ...config, users: [{ ...user, user: { token } }] }), { mode: 0o600 });
  return path;
}

test('lifepod status names each Pod that is not well, with the cause and the command that explains it', async () => {
  onTestFinished(async () => {
    await lifepod.cli('skip', 'retrying', 'bye');
  });
  await applySickPods();
  await untilSick();
  const { namespace, dataDir } = lifepod;

  const reasonsByPod = async (): Promise<Record<string, string>> => {
    const json = await lifepod.cli('status', '-o', 'json');
    expect(json.code, json.stderr).toBe(2);
    const { healthy, troubles } = JSON.parse(json.stdout) as Shown;
    expect(healthy).toBe(false);
    return Object.fromEntries(troubles.flatMap(({ kind, name, reason }) => (kind === 'Pod' ? [[name, reason]] : [])));
  };
  // The containers of two Pods fail again and again, and these Pods are healthy while their containers run.
  await expect.poll(reasonsByPod, { timeout: 120_000 }).toEqual({
    unready: 'NotReady',
    imageless: expect.stringMatching(/^(ErrImagePull|ImagePullBackOff)$/),
    never: 'ErrImageNeverPull',
    misnamed: 'InvalidImageName',
    'first-imageless': expect.stringMatching(/^(ErrImagePull|ImagePullBackOff)$/),
    'entry-imageless': expect.stringMatching(/^(ErrImagePull|ImagePullBackOff)$/),
    crashing: 'CrashLoopBackOff',
    failed: 'Error',
    unsettled: 'CreateContainerConfigError',
    huge: 'Unschedulable',
    unmounted: 'FailedMount',
    retrying: 'CrashLoopBackOff',
  });

  const text = await lifepod.cli('status');
  expect(text.code).toBe(2);
  const line = (name: string): string =>
    text.stdout.split('\n').find((each) => each.startsWith(`  Pod ${namespace}/${name}: `)) ?? '';
  expect(line('imageless')).toContain(NO_IMAGE);
  expect(line('entry-imageless')).toMatch(/defer container bye/);
  expect(line('unmounted')).toMatch(/configmap "?none\b/i);
  expect(line('unready')).toContain("can't open '/none'");
  expect(line('huge')).toMatch(/cpu/);
  for (const name of ['never', 'misnamed', 'first-imageless', 'failed', 'unsettled'])
    expect(line(name)).toMatch(new RegExp(`; see: lifepod why ${name} -n ${namespace} --data-dir ${dataDir}$`));

  const viewer = await viewerKubeconfig();
  const asViewer = await plugin(viewer, 'status');
  expect(asViewer.code, asViewer.stderr).toBe(2);
  expect(asViewer.stdout).toMatch(
    new RegExp(`^  Pod ${namespace}/imageless: .*; see: kubectl lifepod why imageless -n ${namespace}$`, 'm'),
  );
  const unread = asViewer.stdout.slice(asViewer.stdout.indexOf('\nunknown\n'));
  expect(unread).toMatch(/^ {2}Nodes: nodes is forbidden: /m);
  expect(unread).toMatch(new RegExp(`^ {2}Pods of other namespaces than ${namespace}: pods is forbidden: `, 'm'));
  expect(unread).toMatch(/^ {2}Events: events is forbidden: /m);

  const elsewhere = await plugin(viewer, 'status', '-n', 'kube-system');
  expect(elsewhere).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^lifepod: this user may not read Pods in namespace kube-system: [^\n]+\n$/),
  });
});

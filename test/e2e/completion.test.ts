import { dirname } from 'node:path';
import { expect, vi } from 'vitest';
import { runCommandOk } from '../../src/platform/processes.ts';
import { KUBECTL } from '../support/kubectl.ts';
import { LAUNCHER, launch } from '../support/lifepod.ts';
import { pod } from '../support/manifests.ts';
import { lifepod, test } from '../support/shared-engine.ts';

/** Completion gives up after a second, which is too short on a loaded machine. */
const eventually = (check: () => Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 120_000 });

test('completion offers Pods, their containers and defer containers, and namespaces', async () => {
  const script = 'exit 0';
  await lifepod.apply(pod('web-one', { init: [{ name: 'first', script }], defer: [{ name: 'bye', script }] }));
  await lifepod.apply(pod('web-two'));
  const words = async (command: string, ...rest: string[]): Promise<string[]> => {
    const target = ['--data-dir', lifepod.dataDir, '--namespace', lifepod.namespace];
    const { code, stdout, stderr } = await launch(['__complete', command, ...target, ...rest]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout.trim().split('\n');
  };
  await eventually(async () => expect(await words('logs', 'web-')).toEqual(['web-one', 'web-two', ':4']));
  await eventually(async () => expect(await words('why', 'pod/web-t')).toEqual(['pod/web-two', ':4']));
  await eventually(async () => expect(await words('skip', '')).toEqual(['web-one', ':4']));
  await eventually(async () => expect(await words('skip', 'web-one', '')).toEqual(['bye', ':4']));
  await eventually(async () => expect(await words('logs', 'web-one', '-c', '')).toEqual(['app', 'bye', 'first', ':4']));
  const namespace = `--namespace=${lifepod.namespace}`;
  await eventually(async () => expect(await words('logs', namespace.slice(0, -1))).toContain(namespace));
  await lifepod.kubectlOk('create', 'job', 'nightly', '--image=none:1');
  await eventually(async () => expect(await words('why', 'job/n')).toEqual(['job/nightly', ':4']));
  await lifepod.kubectlOk('delete', 'job', 'nightly');
  await lifepod.kubectlOk('delete', 'pod', 'web-two', '--now');
  await eventually(async () => expect(await words('timeline', 'web-')).toEqual(['web-one', 'web-two', ':4']));
  await eventually(async () => {
    const { stdout } = await launch(['__complete', 'image', 'rm', '--data-dir', lifepod.dataDir, '']);
    const images = stdout.split('\n');
    expect(images.some((word) => word.startsWith('busybox'))).toBe(true);
    expect(images.filter((word) => word.includes('pause'))).toEqual([]);
  });
  expect(await words('logs', 'no-such-pod', '-c', '')).toEqual([':4']);
});

test('the completion of kubectl completes kubectl lifepod', async () => {
  await lifepod.apply(pod('found'));
  const PATH = `${dirname(LAUNCHER)}:${process.env['PATH']}`;
  const env = { ...process.env, PATH, KUBECONFIG: lifepod.kubeconfig };
  const complete = (...words: string[]): Promise<string> =>
    runCommandOk(KUBECTL, ['__complete', 'lifepod', ...words], { env });
  expect(await complete('descr')).toMatch(/^describe\t?.*\n:4\n/);
  await eventually(async () => expect(await complete('logs', '-n', lifepod.namespace, 'fou')).toMatch(/^found\n:4\n/));
});

test('completion offers nothing if no engine runs, and prints no error', async () => {
  const result = await launch(['__complete', 'logs', '--data-dir', '/no/such/folder', '']);
  expect(result).toEqual({ code: 0, stdout: ':4\n', stderr: '' });
});

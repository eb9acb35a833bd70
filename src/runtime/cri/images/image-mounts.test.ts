import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import { type Connection, RuntimeCallError } from '../connection.ts';
import { imageMountCalls } from './image-mounts.ts';

const mountCalls = (connection: Connection) =>
  imageMountCalls({ connection, endpoint: 'unix:///c.sock', timers: createVirtualTimers() });

test.each([
  ['native', '/var/lib/containerd/io.containerd.snapshotter.v1.native'],
  ['overlayfs', '/somewhere/else'],
])("an image's files are requested from the snapshotter %s if the image folder is %s", async (name, mountpoint) => {
  const asked: [string, string | undefined][] = [];
  const unary = async (method: string, request: { snapshotter?: string }): Promise<unknown> => {
    const call = method.split('/')[1] ?? '';
    asked.push([call, request.snapshotter]);
    if (call === 'ImageFsInfo') return { imageFilesystems: [{ fsId: { mountpoint } }] };
    if (call === 'ImageStatus') return { info: { info: '{"chainID":"sha256:top"}' } };
    return { mounts: [{ type: 'bind', source: '/s', options: [] }] };
  };
  const calls = mountCalls({ unary } as unknown as Connection);
  const { signal } = new AbortController();
  await calls.imageMounts('i', 'k', signal);
  await calls.releaseImageMounts('k', signal);
  expect(asked).toEqual([
    ['ImageStatus', undefined],
    ['ImageFsInfo', undefined],
    ['View', name],
    ['Remove', name],
  ]);
});

const { signal } = new AbortController();
const mount = { type: 'overlay', source: 'overlay', options: ['ro'] };

/** A list has the answers to the calls of a method in their order. */
function callsTo(answers: Record<string, object | Error | (object | Error)[]>) {
  const asked: string[] = [];
  const unary = async (method: string): Promise<unknown> => {
    const call = method.split('/')[1] ?? '';
    asked.push(call);
    const answer = {
      ImageStatus: { info: { info: '{"chainID":"top"}' } },
      ImageFsInfo: { imageFilesystems: [] },
      ...answers,
    };
    const given = answer[call as keyof typeof answer];
    const found = Array.isArray(given) ? given.shift() : given;
    if (found instanceof Error) throw found;
    return found ?? {};
  };
  return { asked, calls: mountCalls({ unary } as unknown as Connection) };
}

test('the mounts of a view that exists are read', async () => {
  const { asked, calls } = callsTo({
    View: new RuntimeCallError('AlreadyExists', 'exists'),
    Mounts: { mounts: [{ ...mount, target: '' }] },
  });
  expect(await calls.imageMounts('i', 'k', signal)).toEqual([mount]);
  expect(asked).toEqual(['ImageStatus', 'ImageFsInfo', 'View', 'Mounts']);
});

test('the snapshotter is looked up once', async () => {
  const { asked, calls } = callsTo({ View: { mounts: [mount] } });
  await calls.imageMounts('i', 'k', signal);
  await calls.imageMounts('i', 'l', signal);
  await calls.releaseImageMounts('k', signal);
  expect(asked.filter((call) => call === 'ImageFsInfo')).toHaveLength(1);
});

test('another error of the view is thrown', async () => {
  const { calls } = callsTo({ View: new RuntimeCallError('Internal', 'no space') });
  await expect(calls.imageMounts('i', 'k', signal)).rejects.toThrow('no space');
});

test.each([
  ['no information', {}],
  ['no layers', { info: '{}' }],
])('an image has no mounts if the runtime reports %s about it', async (_, info) => {
  const { calls } = callsTo({ ImageStatus: { info } });
  await expect(calls.imageMounts('i', 'k', signal)).rejects.toThrow(
    'the runtime does not report the layers of the image i',
  );
});

test('the release of a view that does not exist succeeds, and any other error is thrown', async () => {
  await callsTo({ Remove: new RuntimeCallError('NotFound', 'gone') }).calls.releaseImageMounts('k', signal);
  const busy = callsTo({ Remove: new RuntimeCallError('FailedPrecondition', 'in use') });
  await expect(busy.calls.releaseImageMounts('k', signal)).rejects.toThrow('in use');
});

/** Returns the arguments with which the script in place of ctr is called. */
function scriptedCtr(): () => string {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-ctr-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'ctr'), `#!/bin/sh\necho "$@" > ${folder}/asked\n`);
  chmodSync(join(folder, 'ctr'), 0o755);
  vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  return () => readFileSync(join(folder, 'asked'), 'utf8').trim();
}
const missingParent = () => new RuntimeCallError('NotFound', 'parent snapshot top does not exist');

test('the layers of an image that is not unpacked are unpacked before its mounts are read', async () => {
  const asked = scriptedCtr();
  const { calls } = callsTo({
    View: [missingParent(), { mounts: [mount] }],
    List: { images: [{ name: 'i', target: { digest: 'sha256:m' } }] },
  });
  expect(await calls.imageMounts('i', 'k', signal)).toEqual([mount]);
  expect(asked()).toBe('--address /c.sock --namespace k8s.io snapshots unpack --snapshotter overlayfs sha256:m');
});

test('an image that is removed before it is unpacked has no mounts', async () => {
  const { calls } = callsTo({ View: missingParent(), List: { images: [] } });
  await expect(calls.imageMounts('i', 'k', signal)).rejects.toThrow('the image i no longer exists');
});

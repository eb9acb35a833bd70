import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import { type Connection, RuntimeCallError } from '../connection.ts';
import { imageMountCalls } from './image-mounts.ts';

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
  const calls = imageMountCalls({ unary } as unknown as Connection, createVirtualTimers());
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

function callsTo(answers: Record<string, object | Error>) {
  const asked: string[] = [];
  const unary = async (method: string): Promise<unknown> => {
    const call = method.split('/')[1] ?? '';
    asked.push(call);
    const answer = {
      ImageStatus: { info: { info: '{"chainID":"top"}' } },
      ImageFsInfo: { imageFilesystems: [] },
      ...answers,
    };
    const found = answer[call as keyof typeof answer];
    if (found instanceof Error) throw found;
    return found ?? {};
  };
  return { asked, calls: imageMountCalls({ unary } as unknown as Connection, createVirtualTimers()) };
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

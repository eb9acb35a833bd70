import { expect, test } from 'vitest';
import { type Connection, RuntimeCallError, type RuntimeErrorCode } from '../connection.ts';
import { pullProgress } from './pull-progress.ts';

const { signal } = new AbortController();
const NAME = 'docker.io/library/app:1';
const SOURCE = 'containerd.io/distribution.source.docker.io';
const LAYER = 'containerd.io/gc.ref.content.l.0';

interface Blob {
  digest: string;
  size: number;
  labels: Record<string, string>;
}
const manifest = (fields: Partial<Blob> = {}): Blob => ({
  digest: 'sha256:aa',
  size: 100,
  labels: { [SOURCE]: 'library/app', [LAYER]: 'sha256:01' },
  ...fields,
});
const layer = (digest: string, size: number, repositories = 'library/app'): Blob => ({
  digest,
  size,
  labels: { [SOURCE]: repositories },
});
const LAYERS = { layers: ['01', '02', '03'].map((hex, i) => ({ digest: `sha256:${hex}`, size: (i + 1) * 100 })) };

interface Store {
  /** The offsets of the downloads, by reference. */
  statuses: Record<string, number>;
  blobs: Blob[];
  content?: unknown;
  endsWith?: RuntimeErrorCode;
}

/** The fake store lists the blobs, and sends a blob, in two messages each. */
function store({ statuses, blobs, content = LAYERS, endsWith = 'Unavailable' }: Store) {
  const calls: [string, object][] = [];
  const bytes = Buffer.from(JSON.stringify(content));
  const connection = {
    unary: async (method: string, request: object) => {
      calls.push([method, request]);
      return { statuses: Object.entries(statuses).map(([ref, offset]) => ({ ref, offset })) };
    },
    stream: async (method: string, request: object, onMessage: (message: object) => void) => {
      calls.push([method, request]);
      const isList = method.endsWith('/List');
      for (const part of [0, 1])
        onMessage(
          isList
            ? { info: part === 0 ? blobs.slice(0, 1) : blobs.slice(1) }
            : { data: part === 0 ? bytes.subarray(0, 9) : bytes.subarray(9) },
        );
      throw new RuntimeCallError(endsWith, 'the stream ended');
    },
  };
  return { calls, connection: connection as unknown as Connection };
}
const progress = (of: Store, ...names: string[]) => pullProgress(store(of).connection, names, signal);
const ARRIVING = { 'layer-sha256:01': 30 };

test('the progress of a pull counts the layers that arrive, the layers that are stored, and not those still missing', async () => {
  const blobs = [
    manifest(),
    layer('sha256:01', 100),
    layer('sha256:02', 200),
    layer('sha256:03', 300, 'library/other'),
  ];
  const { calls, connection } = store({ statuses: ARRIVING, blobs });
  const found = await pullProgress(connection, [NAME], signal);
  expect(found).toEqual(new Map([[NAME, { doneBytes: 230, totalBytes: 600 }]]));
  const service = 'containerd.services.content.v1.Content';
  expect(calls).toEqual([
    [`${service}/ListStatuses`, {}],
    [`${service}/List`, { filters: [`labels."${SOURCE}"`] }],
    [`${service}/Read`, { digest: 'sha256:aa' }],
  ]);
});

test('while no layer is being downloaded, no progress is known and no content is listed', async () => {
  for (const ref of [
    'manifest-sha256:01',
    'config-sha256:01',
    'layer-sha256:xyz',
    'layer-sha256:01-extra',
    'a-layer-sha256:01',
  ]) {
    const { calls, connection } = store({ statuses: { [ref]: 1 }, blobs: [manifest()] });
    expect(await pullProgress(connection, [NAME], signal)).toEqual(new Map());
    expect(calls).toHaveLength(1);
  }
});

test.each<[string, Partial<Store>]>([
  ['has no manifest', { blobs: [layer('sha256:02', 200)] }],
  [
    'has only the manifest of another repository',
    { blobs: [manifest({ labels: { [SOURCE]: 'library/a', [LAYER]: 'sha256:01' } })] },
  ],
  ['has only the manifest of another registry', { blobs: [manifest({ labels: { [LAYER]: 'sha256:01' } })] }],
  [
    'has only a manifest without an arriving layer',
    { blobs: [manifest({ labels: { [SOURCE]: 'library/app', [LAYER]: 'sha256:09' } })] },
  ],
  [
    'has only an index that refers to the arriving digest under another label',
    { blobs: [manifest({ labels: { [SOURCE]: 'library/app', 'containerd.io/gc.ref.content.m.0': 'sha256:01' } })] },
  ],
  ['has two manifests with arriving layers', { blobs: [manifest(), manifest({ digest: 'sha256:bb' })] }],
  ['has a manifest of more than 4 MiB', { blobs: [manifest({ size: 4 * 1024 * 1024 + 1 })] }],
])('the progress of a pull is not known if the content store %s', async (_, of) => {
  expect(await progress({ statuses: ARRIVING, blobs: [], ...of }, NAME)).toEqual(new Map());
});

test('a manifest of 4 MiB is read, and a manifest without layers has no bytes', async () => {
  const blobs = [manifest({ size: 4 * 1024 * 1024 })];
  expect((await progress({ statuses: ARRIVING, blobs, content: {} }, NAME)).get(NAME)).toEqual({
    doneBytes: 0,
    totalBytes: 0,
  });
});

test.each([
  ['localhost:5000/app@sha256:00', 'containerd.io/distribution.source.localhost', 'app'],
  ['registry.local/team/app:1', 'containerd.io/distribution.source.registry.local', 'team/app'],
  [NAME, SOURCE, 'library/base,library/app,library/more'],
])('the blobs of %s are found by the label %s with the value %s', async (name, label, repositories) => {
  const blobs = [manifest({ labels: { [label]: repositories, [LAYER]: 'sha256:01' } })];
  const found = await progress({ statuses: ARRIVING, blobs }, name);
  expect(found).toEqual(new Map([[name, { doneBytes: 30, totalBytes: 600 }]]));
});

test('the progress is returned only for the names of which it is known', async () => {
  const found = await progress({ statuses: ARRIVING, blobs: [manifest()] }, 'docker.io/library/b:1', NAME, 'nonsense');
  expect([...found.keys()]).toEqual([NAME]);
});

test('a failure to list the content is thrown', async () => {
  const failing = progress({ statuses: ARRIVING, blobs: [manifest()], endsWith: 'Unknown' }, NAME);
  await expect(failing).rejects.toThrow('rpc error: code = Unknown desc = the stream ended');
});

import { expect, it } from 'vitest';
import type { Pod, PodRecord, PodTransition } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { alreadyExists, notFound, serviceUnavailable } from '../../machinery/status.ts';
import { emptyPart, fill, type RecordPart, readRecord, writePart } from './record-parts.ts';
import { fromApi } from './step-conversion.ts';

const MAX_BYTES = 16 * 1024;
const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'a', uid: 'u', creationTimestamp: '2026-01-31T00:00:00Z' },
  spec: { containers: [] },
};
const started: Pod = { ...pod, status: { startTime: '2026-01-31T00:00:00Z' } };
const step = (key: string, message = ''): PodTransition => ({
  key,
  at: '2026-01-31T00:00:00.000000Z',
  type: 'T',
  message,
});
const stepOf = (bytes: number): PodTransition => step('k', 'x'.repeat(bytes - JSON.stringify(step('k')).length));

/** `parts`: for each UID, the numbers of its parts. Each part has the step `<UID>.<number>`. */
async function recordsOf(parts: Record<string, number[]> = {}) {
  const backend = await registryBackend();
  const records = clientOf(backend).resource<PodRecord>(POD_RECORDS);
  for (const [podUID, numbers] of Object.entries(parts)) {
    for (const number of numbers) {
      const name = recordName(podUID, number);
      const record = {
        apiVersion: 'lifepod.io/v1',
        kind: 'PodRecord',
        podName: 'web',
        podUID,
        nodeName: 'n',
        transitions: [step(name)],
      };
      await backend.set<PodRecord>(POD_RECORDS, { ...record, metadata: { name, namespace: 'a' } });
    }
  }
  const stored = (): PodRecord[] => backend.objects(POD_RECORDS) as PodRecord[];
  return { backend, records, stored };
}
const partOf = (number: number, steps: PodTransition[], exists: boolean): RecordPart => ({
  number,
  steps,
  bytes: JSON.stringify(steps).length,
  exists,
});

it.each([
  ['a part takes the step that makes it exactly full', 0, []],
  ['a part does not take a step that exceeds its size by one character', 1, ['k']],
])('%s', (_, more, left) => {
  const part = emptyPart(0);
  const first = stepOf(1000);
  const steps = [first, stepOf(MAX_BYTES - part.bytes - 1000 + more)];
  fill(part, steps);
  expect(steps.map(({ key }) => key)).toEqual(left);
  expect(part.steps).toHaveLength(2 - left.length);
  expect(part.bytes).toBe(left.length === 0 ? MAX_BYTES : 1002);
});

it('an empty part takes one step that is larger than a part, and no further one', () => {
  const part = emptyPart(0);
  const steps = [stepOf(MAX_BYTES + 1), step('next')];
  fill(part, steps);
  expect(part.steps).toHaveLength(1);
  expect(steps.map(({ key }) => key)).toEqual(['next']);
});

it('an empty part has a number and does not exist in the API', () => {
  expect(emptyPart(3)).toEqual({ number: 3, steps: [], bytes: 2, exists: false });
});

it.each<[string, Pod, string[]]>([
  ['has not started are not listed', pod, []],
  ['has started are listed', started, ['list podrecords a/']],
  [
    'is known by its UID only are listed',
    { ...pod, metadata: { name: 'web', namespace: 'a', uid: 'u' } },
    ['list podrecords a/'],
  ],
])('without a first part, the parts of a Pod that %s', async (_, of, listed) => {
  const { backend, records } = await recordsOf({ other: [0, 1] });
  const { part } = await readRecord(records, 'n', of);
  expect(part).toEqual(emptyPart(0));
  expect(backend.calls).toEqual(['get podrecords a/u.0', ...listed]);
});

it('the parts of a record are read one after the other, and the last one is the newest', async () => {
  const { backend, records } = await recordsOf({ u: [0, 1] });
  const { part, recorded } = await readRecord(records, 'n', started);
  expect(part).toEqual(partOf(1, [step('u.1')], true));
  expect(recorded.fresh(['u.0', 'u.1', 'u.2'].map((key) => fromApi(step(key)))).map(({ key }) => key)).toEqual(['u.2']);
  expect(backend.calls).toEqual(['get podrecords a/u.0', 'get podrecords a/u.1', 'get podrecords a/u.2']);
});

it('the part with the highest number is the newest, even if the first parts were deleted', async () => {
  const { records } = await recordsOf({ u: [10, 9, 2], other: [11] });
  const { part, recorded } = await readRecord(records, 'n', started);
  expect(part).toEqual(partOf(10, [step('u.10')], true));
  const keys = ['u.2', 'u.9', 'u.10', 'other.11'];
  expect(recorded.fresh(keys.map((key) => fromApi(step(key)))).map(({ key }) => key)).toEqual(['other.11']);
});

it('the parts of a static Pod that has not started are listed, because earlier Pods may have had its UID', async () => {
  const { records } = await recordsOf({ u: [1] });
  const annotations = { 'kubernetes.io/config.source': 'file' };
  const { part } = await readRecord(records, 'n', { ...pod, metadata: { ...pod.metadata, annotations } });
  expect(part).toEqual(partOf(1, [step('u.1')], true));
});

it('a part that cannot be read is not taken for a missing one', async () => {
  const { backend, records } = await recordsOf({ u: [0] });
  backend.failNext('get podrecords', serviceUnavailable('not now'));
  await expect(readRecord(records, 'n', pod)).rejects.toThrow('not now');
});

it('a part is created once, and then updated', async () => {
  const { backend, records, stored } = await recordsOf();
  const part = partOf(4, [step('one')], false);
  await writePart(records, 'n', pod, part);
  expect(part.exists).toBe(true);
  part.steps.push(step('two'));
  await writePart(records, 'n', pod, part);
  expect(backend.calls).toEqual(['create podrecords a/u.4', 'update podrecords a/u.4']);
  expect(stored()).toMatchObject([
    {
      apiVersion: 'lifepod.io/v1',
      kind: 'PodRecord',
      metadata: { name: 'u.4', namespace: 'a' },
      podName: 'web',
      podUID: 'u',
      transitions: [step('one'), step('two')],
    },
  ]);
});

it.each([
  ['was deleted is created again', true, [], ['update', 'create']],
  ['was already created by an earlier request is updated', false, [0], ['create', 'update']],
] as const)('a part that %s', async (_, exists, existing, verbs) => {
  const { backend, records, stored } = await recordsOf({ u: [...existing] });
  const part = partOf(0, [step('new')], exists);
  await writePart(records, 'n', pod, part);
  expect(part.exists).toBe(true);
  expect(stored().map(({ transitions }) => transitions)).toEqual([[step('new')]]);
  expect(backend.calls).toEqual(verbs.map((verb) => `${verb} podrecords a/u.0`));
});

it.each([
  ['create', serviceUnavailable('not now')],
  ['create', notFound({ group: '', resource: 'namespaces' }, 'a')],
  ['update', serviceUnavailable('not now')],
  ['update', alreadyExists(POD_RECORDS, 'u.0')],
])('a failed %s of a part is not retried: %s', async (verb, error) => {
  const exists = verb === 'update';
  const { backend, records } = await recordsOf({ u: exists ? [0] : [] });
  backend.failNext(`${verb} podrecords`, error);
  const part = partOf(0, [step('new')], exists);
  await expect(writePart(records, 'n', pod, part)).rejects.toBe(error);
  expect(part.exists).toBe(exists);
  expect(backend.calls).toHaveLength(1);
});

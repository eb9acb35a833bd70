import { expect, test } from 'vitest';
import { type Connection, RuntimeCallError } from './connection.ts';
import { ATTEMPT_LABEL, containerLabels, isOurs, kindOf, podUidOf, splitImageName, withImageName } from './labels.ts';
import { objectQueries } from './object-queries.ts';
import { millisOf, timestampMillis } from './responses.ts';

const { signal } = new AbortController();
const ours = { id: 'ours', labels: { [ATTEMPT_LABEL]: '0' } };
const foreign = { id: 'foreign', labels: { 'io.kubernetes.pod.uid': 'uid' } };

/** `answer`: the result of the calls; an error rejects them. */
function queries(answer: object) {
  const calls: unknown[] = [];
  const unary = async (method: string, request: object): Promise<object> => {
    calls.push([method, request]);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { calls, ...objectQueries({ unary } as unknown as Connection, { scope: 'mine' }) };
}

test('the lists have only the objects that lifepod created, and are filtered by the labels of the instance', async () => {
  const { calls, listSandboxes, listContainers } = queries({ items: [foreign, ours], containers: [foreign, ours] });
  expect(await listSandboxes({}, signal)).toEqual([ours]);
  expect(await listContainers({}, signal)).toEqual([ours]);
  await listSandboxes({ id: 's', labels: { app: 'web', scope: 'other' } }, signal);
  await listContainers({ id: 'c', sandboxId: 's', labels: { app: 'web' } }, signal);
  const labelSelector = { app: 'web', scope: 'mine' };
  expect(calls).toEqual([
    ['runtime.v1.RuntimeService/ListPodSandbox', { filter: { id: '', labelSelector: { scope: 'mine' } } }],
    [
      'runtime.v1.RuntimeService/ListContainers',
      { filter: { id: '', podSandboxId: '', labelSelector: { scope: 'mine' } } },
    ],
    ['runtime.v1.RuntimeService/ListPodSandbox', { filter: { id: 's', labelSelector } }],
    ['runtime.v1.RuntimeService/ListContainers', { filter: { id: 'c', podSandboxId: 's', labelSelector } }],
  ]);
});

test('the status of an object that does not exist is undefined, and any other error is thrown', async () => {
  const known = queries({ status: { id: 'x' } });
  expect(await known.sandboxStatus('s', signal)).toEqual({ id: 'x' });
  expect(await known.containerStatus('c', signal)).toEqual({ id: 'x' });
  expect(known.calls).toEqual([
    ['runtime.v1.RuntimeService/PodSandboxStatus', { podSandboxId: 's' }],
    ['runtime.v1.RuntimeService/ContainerStatus', { containerId: 'c' }],
  ]);
  const missing = queries(new RuntimeCallError('NotFound', 'no'));
  expect(await missing.sandboxStatus('s', signal)).toBeUndefined();
  expect(await missing.containerStatus('c', signal)).toBeUndefined();
  const error = new RuntimeCallError('Internal', 'no');
  await expect(queries(error).sandboxStatus('s', signal)).rejects.toBe(error);
  await expect(queries(error).containerStatus('c', signal)).rejects.toBe(error);
});

const pod = { uid: 'uid', namespace: 'default', name: 'web' };

test.each(['init', 'app', 'defer', 'ephemeral'] as const)(
  'a container of the kind %s is found by its labels',
  (kind) => {
    const labels = containerLabels(pod, 'main', kind, 2);
    expect([kindOf(labels), podUidOf(labels), isOurs(labels)]).toEqual([kind, 'uid', true]);
  },
);

test('a container with an unknown kind or without labels of lifepod has no kind', () => {
  expect([kindOf({}), kindOf({ 'lifepod.io/kind': 'other' }), podUidOf({}), isOurs(foreign.labels)]).toEqual([
    undefined,
    undefined,
    '',
    false,
  ]);
});

test('the name of the image is stored next to the annotations', () => {
  expect(splitImageName(withImageName({ note: 'a' }, 'busybox:1'))).toEqual({
    image: 'busybox:1',
    annotations: { note: 'a' },
  });
  expect(splitImageName({ note: 'a' })).toEqual({ image: undefined, annotations: { note: 'a' } });
});

test.each([
  [0, undefined],
  [-1, undefined],
  [1, 0],
  [2_999_999, 2],
])('a time of %d ns is in milliseconds %s', (nanos, millis) => {
  expect(millisOf(nanos)).toBe(millis);
});

test('a timestamp is rounded down to milliseconds, and the absence of one is kept', () => {
  expect(timestampMillis({ seconds: 3, nanos: 4_999_999 })).toBe(3004);
  expect(timestampMillis(null)).toBeUndefined();
});

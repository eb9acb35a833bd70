import { expect, test } from 'vitest';
import type { Connection } from './connection.ts';
import { emptyFacts } from './facts.ts';
import { ATTEMPT_LABEL, POD_UID_LABEL } from './labels.ts';
import { createObserver } from './observer.ts';

const labels = { [POD_UID_LABEL]: 'uid-1', [ATTEMPT_LABEL]: '0' };
const listed = {
  id: 'c1',
  podSandboxId: 's1',
  metadata: { name: 'init', attempt: 0 },
  image: { image: 'busybox' },
  imageRef: 'busybox',
  state: 'CONTAINER_EXITED',
  createdAt: 1_000_000,
  labels,
  annotations: {},
};
const UNKNOWN = { exitCode: 255, reason: 'Unknown' };

test.each([
  ['a shim reported the exit that CRI does not know', UNKNOWN, { exitCode: 0, reason: 'Completed', finishedAt: 7 }],
  [
    'CRI and a shim report different exits',
    { exitCode: 255, reason: 'Error' },
    { exitCode: 255, reason: 'Error', finishedAt: 5 },
  ],
])('an observation has the correct exit if %s', async (_, status, expected) => {
  const answers: Record<string, object> = {
    ListPodSandbox: { items: [] },
    ListContainers: { containers: [listed] },
    ContainerStatus: {
      status: {
        state: 'CONTAINER_EXITED',
        startedAt: 1_000_000,
        finishedAt: 5_000_000,
        imageRef: '',
        message: '',
        ...status,
      },
    },
  };
  const connection = {
    unary: async (method: string) => answers[method.slice(method.indexOf('/') + 1)],
  } as unknown as Connection;
  const exits = {
    exitOf: (id: string) => (id === 'c1' ? { exitCode: 0, finishedAt: 7 } : undefined),
    keepOnly: () => undefined,
  };
  const observe = createObserver(connection, emptyFacts(), {}, exits).observe('uid-1', new AbortController().signal);
  expect((await observe).containers).toMatchObject([{ id: 'c1', state: 'exited', ...expected }]);
});

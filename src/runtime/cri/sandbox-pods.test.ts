import { expect, test } from 'vitest';
import { podLabels } from './labels.ts';
import { sandboxMessage } from './requests.ts';
import { sandboxPods } from './sandbox-pods.ts';

test('a sandbox that was created for a Pod leads to the Pod and its labels', async () => {
  const pod = { uid: 'u', namespace: 'n', name: 'p' };
  const scope = { 'lifepod.io/instance': '/data' };
  const config = { pod, attempt: 1, hostname: 'p', logDirectory: '/logs', labels: { app: 'db' }, annotations: {} };
  const { metadata, labels } = sandboxMessage(config, scope) as {
    metadata: typeof pod & { attempt: number };
    labels: Record<string, string>;
  };
  expect(labels).toMatchObject({ ...podLabels(pod, 1), ...scope });
  const listSandboxes = async () => [{ id: 's', metadata, labels, state: 'SANDBOX_READY', createdAt: 0 } as const];
  const found = await sandboxPods({ listSandboxes }, scope, new AbortController().signal);
  expect([...found]).toEqual([['s', { ...pod, labels: { app: 'db' } }]]);
});

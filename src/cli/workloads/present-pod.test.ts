import { expect, test } from 'vitest';
import { PODS } from '../../api/resources.ts';
import { clientOf } from '../../client/typed-client.ts';
import { forbidden, pathNotFound } from '../../machinery/status.ts';
import { hintsFor } from '../hints.ts';
import { skipEntry } from '../skip.ts';
import { presentPod, unnamedPod } from './present-pod.ts';
import { webAndGone } from './records-fixture.ts';

async function start(namespace = 'a') {
  const backend = await webAndGone();
  const hints = hintsFor({ dataDir: '/d' }, { KUBECONFIG: '/d/kubeconfig' }, undefined, false);
  return { backend, source: { client: clientOf(backend), namespace, hints } };
}

const ENDED =
  "Pod gone in namespace a no longer exists: 'lifepod why gone -n a --data-dir /d' explains its end, and " +
  "'lifepod timeline gone -n a --data-dir /d' draws its life";

test('a Pod is found by its name, with and without its type', async () => {
  const { source } = await start();
  for (const name of ['web', 'pod/web']) expect((await presentPod(source, name)).metadata.name).toBe('web');
});

test('the error for a Pod that no longer exists names the commands that show its life', async () => {
  const { source } = await start();
  await expect(presentPod(source, 'gone')).rejects.toThrow(ENDED);
  await expect(presentPod(source, 'gone', 'and its logs are deleted')).rejects.toThrow(
    /^Pod gone in namespace a no longer exists, and its logs are deleted: /,
  );
  await expect(skipEntry(source, 'gone', 'bye')).rejects.toThrow('no longer exists, so there is nothing to skip: ');
});

test('the error for an unknown Pod says where to look', async () => {
  const { source } = await start('b');
  await expect(presentPod(source, 'web')).rejects.toThrow(
    "no Pod web in namespace b, and no record of one, but in namespace a: 'lifepod why web -n a --data-dir /d' explains it",
  );
});

test('a user without rights, and a server without records, get a sentence', async () => {
  const { backend, source } = await start();
  backend.failNext('get pods', forbidden(PODS, '', 'no'));
  await expect(presentPod(source, 'web')).rejects.toThrow('this user may not read Pods in namespace a: ');
  const missing = (): void => backend.failNext('list podrecords', pathNotFound());
  missing();
  await expect(presentPod(source, 'none')).rejects.toThrow(
    "no Pod none in namespace a: 'kubectl get pods -A' lists all Pods (answered by the engine in /d)",
  );
  missing();
  backend.failNext('list pods /', forbidden(PODS, '', 'no'));
  await expect(presentPod(source, 'none')).rejects.toThrow(
    "no Pod none in namespace a: 'kubectl get pods -n a' lists the Pods of this namespace (answered by",
  );
});

test('a command without the name of a Pod lists the Pods of the namespace', async () => {
  const { backend, source } = await start();
  expect((await unnamedPod(source, 'describe pod')).message).toBe(
    "name one of the Pods in namespace a (web), such as 'lifepod describe pod web -n a --data-dir /d'",
  );
  expect((await unnamedPod({ ...source, namespace: 'b' }, 'describe pod')).message).toBe(
    "there is no Pod in namespace b: 'kubectl get pods -A' lists all Pods (answered by the engine in /d)",
  );
  backend.failNext('list pods /', forbidden(PODS, '', 'no'));
  expect((await unnamedPod({ ...source, namespace: 'b' }, 'describe pod')).message).toMatch(
    /^there is no Pod in namespace b: name another one with -n /,
  );
  expect((await unnamedPod({ ...source, namespace: 'c' }, 'describe pod')).message).toBe(
    "the namespace c does not exist: 'kubectl get namespaces' lists those that exist (answered by the engine in /d)",
  );
  backend.failNext('list pods', forbidden(PODS, '', 'no'));
  await expect(unnamedPod(source, 'describe pod')).rejects.toThrow('this user may not read Pods in namespace a: ');
});

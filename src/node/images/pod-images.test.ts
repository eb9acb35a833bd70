import { beforeEach, expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod, Secret } from '../../api/generated/types.ts';
import { SECRETS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { createPodImagePull } from './pod-images.ts';
import type { ImagePuller } from './puller.ts';

let backend: RegistryBackend;
let warnings: string[];
/** For each pull, the user names of its credentials. */
let users: (string | undefined)[][];
beforeEach(async () => {
  backend = await registryBackend();
  [warnings, users] = [[], []];
});

const secretOf = (name: string): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'a' },
  type: 'kubernetes.io/dockercfg',
  data: { '.dockercfg': Buffer.from(JSON.stringify({ 'r.io': { username: name, password: 'p' } })).toString('base64') },
});
const puller: ImagePuller = {
  async pull(reference, credentials) {
    users.push(credentials.map(({ username }) => username));
    return { info: { id: reference, tags: [], digests: [], sizeBytes: 0 }, millis: 1 };
  },
};
const kept = { find: async (_: Pod, __: string, name: string) => (name === 'copied' ? secretOf(name) : undefined) };

async function pullWith(names: (string | undefined)[], withKept = true): Promise<string> {
  const pull = createPodImagePull({
    client: clientOf(backend),
    puller,
    ...(withKept ? { kept: kept as never } : {}),
    warn: (_, reason, message) => void warnings.push(`${reason}: ${message}`),
  });
  const pod = podOf({ imagePullSecrets: names.map((name) => ({ name })) });
  const { info } = await pull(
    { ...pod, metadata: { ...pod.metadata, namespace: 'a' } },
    'r.io/team/app:1',
    () => undefined,
    new AbortController().signal,
  );
  return info.id;
}
const missing = (names: string): string =>
  `FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (${names}); attempting to pull the image may not succeed.`;

test('an image is pulled with each pull secret of its Pod that exists or has a copy, and missing ones are reported', async () => {
  await backend.set(SECRETS, secretOf('own'));
  backend.calls.length = 0;
  expect(await pullWith(['own', '', undefined, 'own'])).toBe('r.io/team/app:1');
  expect(backend.calls).toEqual(['get secrets a/own']);
  expect([users, warnings]).toEqual([[['own']], []]);
  await pullWith(['gone', 'own', 'copied', 'lost']);
  expect(users[1]).toEqual(['own', 'copied']);
  await pullWith(['copied', 'own'], false);
  expect(users[2]).toEqual(['own']);
  expect(warnings).toEqual([missing('gone, lost'), missing('copied')]);
});

test('an image is not pulled if a pull secret cannot be read', async () => {
  backend.failNext('get secrets', serviceUnavailable('the API is down'));
  await expect(pullWith(['copied'])).rejects.toThrow('the API is down');
  expect([users, warnings]).toEqual([[], []]);
});

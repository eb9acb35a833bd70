import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { CoreV1Event, Pod, Secret } from '../../api/generated/types.ts';
import { EVENTS, SECRETS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { forbidden } from '../../machinery/status.ts';
import { rebootOf } from './stops/reboot.ts';
import { readPullSecrets, registryActions } from './why.ts';

const event = (name: string, reason: string, node: string, lastTimestamp: string): CoreV1Event =>
  ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: 'default' },
    involvedObject: { kind: 'Node', name: node, uid: node },
    type: 'Warning',
    reason,
    lastTimestamp,
  }) as CoreV1Event;

test('the newest restart of the machine is read from the Events of its node', async () => {
  const backend = await registryBackend();
  const client = clientOf(backend);
  expect(await rebootOf(client, 'n')).toBeUndefined();
  await backend.set(EVENTS, event('a', 'Rebooted', 'n', '2026-01-31T11:00:00Z'));
  await backend.set(EVENTS, event('b', 'Rebooted', 'n', '2026-01-31T12:00:00Z'));
  await backend.set(EVENTS, event('c', 'Starting', 'n', '2026-01-31T13:00:00Z'));
  await backend.set(EVENTS, event('d', 'Rebooted', 'other', '2026-01-31T14:00:00Z'));
  expect(await rebootOf(client, 'n')).toBe(Date.parse('2026-01-31T12:00:00Z'));
});

test('a user who may not read the Events of nodes gets no time of a restart', async () => {
  const backend = await registryBackend();
  backend.failNext('list events', forbidden(EVENTS, '', 'no'));
  expect(await rebootOf(clientOf(backend), 'n')).toBeUndefined();
});

test('the existing pull secrets of a Pod are read if a pull has failed and the user may read them', async () => {
  const backend = await registryBackend();
  await backend.set<Secret>(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace: 'a' } });
  const pod = (reason: string): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'a' },
    spec: { containers: [{ name: 'c', image: 'i' }], imagePullSecrets: [{ name: 'absent' }, { name: 'a' }] },
    status: {
      containerStatuses: [
        { name: 'c', image: 'i', imageID: '', ready: false, restartCount: 0, state: { waiting: { reason } } },
      ],
    },
  });
  const client = clientOf(backend);
  const read = await readPullSecrets(client, pod('ErrImagePull'));
  expect(read?.map(({ metadata }) => metadata.name)).toEqual(['a']);
  expect(await readPullSecrets(client, pod('ContainerCreating'))).toBeUndefined();
  backend.failNext('get secrets', forbidden(SECRETS, 'a', 'no'));
  expect(await readPullSecrets(client, pod('ErrImagePull'))).toBeUndefined();
});

test('the hosts.toml of a registry from which an image cannot be pulled is named, even the default one, and its mirror if that was asked', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-why-'));
  const pod = (image: string, reason: string, message: string): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'a', image }] },
    status: {
      containerStatuses: [
        { name: 'a', image, imageID: '', ready: false, restartCount: 0, state: { waiting: { reason, message } } },
      ],
    },
  });
  const files = (image: string, reason = 'ImagePullBackOff', message = ''): string[] =>
    registryActions(pod(image, reason, message), folder, { asRoot: (command) => command }).map(
      ({ description }) => description,
    );
  const named = (registry: string) => [
    `check ${join(folder, 'certs.d', registry, 'hosts.toml')}, which configures its registry; containerd logs whether it can be read`,
  ];
  try {
    expect(files('app:1')).toEqual([]);
    for (const registry of ['docker.io', '_default']) {
      mkdirSync(join(folder, 'certs.d', registry), { recursive: true });
      writeFileSync(join(folder, 'certs.d', registry, 'hosts.toml'), '');
    }
    expect(files('app:1')).toEqual(named('docker.io'));
    expect(files('example.com:5000/app:1')).toEqual(named('_default'));
    expect(files('app:1', 'ErrImageNeverPull')).toEqual([]);
    const mirrors = '[host."http://localhost:5000"]\n  capabilities = ["pull"]\n';
    writeFileSync(join(folder, 'certs.d', 'docker.io', 'hosts.toml'), `server = "https://docker.io"\n${mirrors}`);
    expect(files('app:1')).toEqual(named('docker.io'));
    const lookup = 'Head "https://docker.io/v2/app": dial tcp: lookup docker.io: no such host';
    expect(files('app:1', 'ErrImagePull', lookup)).toEqual([
      expect.stringMatching(
        /^check the name of the image: http:\/\/localhost:5000, which .* probably does not have it; /,
      ),
    ]);
    const down = 'Head "http://localhost:5000/v2/app": dial tcp 127.0.0.1:5000: connect: no route to host';
    expect(files('app:1', 'ErrImagePull', down)).toEqual(named('docker.io'));
    for (const record of ['{"containerRuntimeEndpoint":"unix:///c.sock"}', 'unreadable']) {
      writeFileSync(join(folder, 'engine.json'), record);
      expect(files('app:1')).toEqual([]);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

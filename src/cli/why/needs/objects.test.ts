import { expect, test } from 'vitest';
import type { Container, Volume, VolumeMount } from '../../../api/generated/types.ts';
import { hintsFor } from '../../hints.ts';
import { objectFinding } from './objects.ts';

interface Case {
  text: string;
  volumes?: Volume[];
  containers?: Partial<Container>[];
  cause: string | undefined;
  actions?: string[];
}

const items = [{ key: 'k', path: 'p' }];
const SET_UP = 'MountVolume.SetUp failed for volume "v" : ';
const CONFIG_KEY = `${SET_UP}configmap references non-existent config key: k`;
const SECRET_KEY = `${SET_UP}references non-existent secret key: k`;
const edit = (object: string): string =>
  `add the key, and the node retries automatically: kubectl edit ${object} -n n --kubeconfig /k`;
const NO_CONTAINER = 'has a resourceFieldRef to the container other, which the Pod does not have';
const resourceFieldRef = { containerName: 'other', resource: 'limits.cpu' };

const SUB_PATH = 'for volumeMount "v" of container "app"';
const withPaths = (...paths: Partial<VolumeMount>[]): Partial<Container>[] => [
  { name: 'app', volumeMounts: paths.map((path) => ({ name: 'v', mountPath: '/m', ...path })) },
  { name: 'other', volumeMounts: [{ name: 'v', mountPath: '/m', subPath: 'of-other' }] },
];

const CASES: Record<string, Case> = {
  'the ConfigMap whose key a volume needs': {
    text: CONFIG_KEY,
    volumes: [
      { name: 'v', configMap: { name: 'c', items } },
      { name: 'w', configMap: { name: 'd', items } },
    ],
    cause: 'needs the key k of the ConfigMap c, which does not have this key',
    actions: [edit('configmap c')],
  },
  'the Secret whose key a volume needs': {
    text: SECRET_KEY,
    volumes: [{ name: 'v', secret: { secretName: 's', items } }],
    cause: 'needs the key k of the Secret s, which does not have this key',
    actions: [edit('secret s')],
  },
  'the Secret of a projected volume, and not a ConfigMap or an optional Secret with the same key': {
    text: SECRET_KEY,
    volumes: [
      {
        name: 'v',
        projected: {
          sources: [
            { configMap: { name: 'c', items } },
            { secret: { name: 'o', items, optional: true } },
            { secret: { name: 's', items } },
          ],
        },
      },
    ],
    cause: 'needs the key k of the Secret s, which does not have this key',
    actions: [edit('secret s')],
  },
  'both ConfigMaps of a projected volume that may lack the key': {
    text: CONFIG_KEY,
    volumes: [
      { name: 'v', projected: { sources: [{ configMap: { name: 'c', items } }, { configMap: { name: 'd', items } }] } },
    ],
    cause: 'needs the key k of the ConfigMap c or d, which does not have this key',
    actions: [edit('configmap c'), edit('configmap d')],
  },
  'a ServiceAccount that was deleted': {
    text: `${SET_UP}failed to fetch token: serviceaccounts "sa" not found`,
    cause: 'needs a token of the ServiceAccount sa, which does not exist in namespace n',
    actions: [
      'create the ServiceAccount, and the node retries automatically: kubectl create serviceaccount sa -n n --kubeconfig /k',
    ],
  },
  'a container that a downwardAPI volume names': {
    text: `${SET_UP}container other not found`,
    volumes: [{ name: 'v', downwardAPI: { items: [{ path: 'p', resourceFieldRef }] } }],
    cause: NO_CONTAINER,
  },
  'a container that a variable names': {
    text: 'container other not found',
    containers: [{ name: 'app', env: [{ name: 'A', valueFrom: { resourceFieldRef } }] }],
    cause: NO_CONTAINER,
  },
  'variables of a subPathExpr': {
    text: 'missing value for A, B',
    cause: 'cannot mount a subPathExpr: the env of the container gives its variables A and B no value',
  },
  'a subPath that the image of an image volume does not have': {
    text: `failed to create subPath directory ${SUB_PATH}`,
    volumes: [{ name: 'v', image: { reference: 'app:1' } }],
    containers: withPaths({ subPath: 'tagg.txt' }),
    cause: 'needs the subPath tagg.txt of its volume v, which the image app:1 does not have',
    actions: ['correct the subPath, and recreate the Pod, or use an image that has this path: '],
  },
  'both subPaths that an image volume may lack': {
    text: `failed to create subPath directory ${SUB_PATH}`,
    volumes: [{ name: 'v', image: { reference: 'app:1' } }],
    containers: withPaths({}, { subPath: 'a' }, { subPathExpr: '$(B)' }),
    cause: 'needs the subPath a or $(B) of its volume v, which the image app:1 does not have',
  },
  'a subPath that cannot be created in its volume': {
    text: `failed to create subPath directory ${SUB_PATH}`,
    volumes: [{ name: 'v', hostPath: { path: '/proc' } }],
    containers: withPaths({ subPath: 'a' }),
    cause:
      'needs the subPath a of its volume v, which does not exist and cannot be created, probably because the volume is read-only or full',
  },
  'a subPath that leads through a file or out of its volume': {
    text: `failed to prepare subPath ${SUB_PATH}`,
    volumes: [{ name: 'v', configMap: { name: 'c' } }],
    containers: withPaths({ subPath: 'key/more' }),
    cause:
      'cannot mount the subPath key/more of its volume v, probably because the path leads through a file, or through a link to a place outside the volume',
    actions: ['correct the subPath, or the files of the volume, and recreate the Pod: '],
  },
};

test.each(Object.entries(CASES))(
  'objectFinding names %s',
  (_, { text, volumes = [], containers = [], ...expected }) => {
    const spec = { containers: containers as Container[], volumes };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec };
    const hints = hintsFor({ kubeconfig: '/k' }, {}, undefined, false);
    const found = objectFinding({ namespace: 'n', hints, pod }, text);
    expect(found?.cause).toBe(expected.cause);
    const lines = found?.actions.map(({ description, command = '' }) => `${description}: ${command}`);
    if (expected.actions !== undefined) expect(lines).toEqual(expected.actions);
  },
);

test.each(['container 4f5e not found', CONFIG_KEY, 'no such device'])('objectFinding does not explain %j', (text) => {
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [] } };
  expect(objectFinding({ namespace: 'n', hints: hintsFor({}, {}, undefined, false), pod }, text)).toBeUndefined();
});

import { expect, test } from 'vitest';
import type { Container, Volume } from '../../../api/generated/types.ts';
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

import { container, explains, READY, running } from '../explain-fixtures.ts';

const COPY =
  'if the object existed at any time since the first app container started, its node has a copy and uses the copy';
const UNAFFECTED =
  'its other containers are not affected: a defer container needs these objects only when the Pod ends';

explains({
  'a running Pod whose defer containers need objects and a key that do not exist': {
    spec: {
      deferContainers: [
        container('bye', {
          env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'settings', key: 'a' } } }],
          envFrom: [{ configMapRef: { name: 'settings' } }],
        }),
        container('last', { env: [{ name: 'B', valueFrom: { secretKeyRef: { name: 'login', key: 'password' } } }] }),
      ],
    },
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app')] },
    entryNeeds: [
      { entry: 'bye', kind: 'ConfigMap', name: 'settings' },
      { entry: 'last', kind: 'Secret', name: 'login', key: 'password' },
    ],
    sentence:
      'p runs, but its defer container bye needs the ConfigMap settings, which does not exist in namespace n; last also lacks what it needs.',
    evidence: [
      'defer container last needs the key password of the Secret login, which does not have this key',
      COPY,
      UNAFFECTED,
    ],
    advice:
      /^create the ConfigMap before the Pod ends, unless its node has a copy: kubectl create configmap settings -n n --from-literal=a=VALUE\nadd the key before the Pod ends: kubectl edit secret login -n n$/,
  },
  'a running Pod whose defer container needs a key that its ConfigMap does not have': {
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app')] },
    entryNeeds: [{ entry: 'bye', kind: 'ConfigMap', name: 'settings', key: 'a' }],
    sentence:
      'p runs, but its defer container bye needs the key a of the ConfigMap settings, which does not have this key.',
    evidence: [UNAFFECTED],
    advice: /^add the key before the Pod ends: /,
  },
  'a running Pod whose defer containers have what they need': {
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app')] },
    entryNeeds: [],
    sentence: /^p is running: its container is ready/,
    advice: /^$/,
  },
});

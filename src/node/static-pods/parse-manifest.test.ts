import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { uidOf } from '../../machinery/meta.ts';
import { ManifestError, readManifest } from './parse-manifest.ts';

const source = { file: 'web.yaml', nodeName: 'node-1', now: Date.UTC(2026, 0, 31) };
const web = (spec: object = {}, metadata: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', ...metadata },
  spec: { containers: [{ name: 'app', image: 'busybox:1.28' }], ...spec },
});
const read = (content: object | string, more: Partial<typeof source> = {}) =>
  readManifest(typeof content === 'string' ? content : stringify(content), { ...source, ...more });

describe('readManifest', () => {
  it('readManifest adds the name of the node, the defaults and the annotations of a static Pod', async () => {
    const { pod, warnings } = await read(web({}, { labels: { app: 'web' }, annotations: { note: 'x' } }));
    const uid = uidOf(pod);
    expect(uid).toMatch(/^[0-9a-f]{32}$/);
    expect(pod.metadata).toEqual({
      name: 'web-node-1',
      namespace: 'default',
      uid,
      generation: 1,
      creationTimestamp: '2026-01-31T00:00:00Z',
      labels: { app: 'web' },
      annotations: {
        note: 'x',
        'kubernetes.io/config.source': 'file',
        'kubernetes.io/config.hash': uid,
        'kubernetes.io/config.seen': '2026-01-31T00:00:00Z',
      },
    });
    expect(pod.spec).toMatchObject({
      nodeName: 'node-1',
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      tolerations: [{ operator: 'Exists', effect: 'NoExecute' }],
      containers: [{ name: 'app', imagePullPolicy: 'IfNotPresent' }],
    });
    expect(pod.spec?.volumes).toBeUndefined();
    expect(pod.spec?.serviceAccountName).toBeUndefined();
    expect(pod.status).toEqual({ phase: 'Pending', qosClass: 'BestEffort' });
    expect(warnings).toEqual([]);
  });

  it('readManifest reads JSON like YAML', async () => {
    expect((await read(JSON.stringify(web()))).pod).toEqual((await read(web())).pod);
  });

  it('readManifest keeps the namespace, and drops fields that only the API may set', async () => {
    const { pod } = await read(
      web({ nodeName: 'other' }, { namespace: 'kube-system', uid: 'mine', finalizers: ['a/b'] }),
    );
    expect(pod.metadata.namespace).toBe('kube-system');
    expect(pod.metadata.uid).not.toBe('mine');
    expect(pod.metadata.finalizers).toBeUndefined();
    expect(pod.spec?.nodeName).toBe('node-1');
  });

  it('readManifest reads init containers from the annotation of older versions', async () => {
    const text = '[{"name":"first","image":"busybox:1.28"}]';
    const { pod, warnings } = await read(web({}, { annotations: { 'pod.beta.kubernetes.io/init-containers': text } }));
    expect(pod.spec?.initContainers).toMatchObject([{ name: 'first' }]);
    expect(warnings).toEqual([expect.stringContaining('deprecated')]);
  });

  it('readManifest warns about unknown fields', async () => {
    expect((await read(web({ colour: 'red' }))).unknown).toEqual(['unknown field "spec.colour"']);
  });

  describe('the UID', () => {
    const readUid = async (...args: Parameters<typeof read>): Promise<string | undefined> =>
      (await read(...args)).pod.metadata.uid;
    it('the UID does not depend on the time, the order of the fields, or comments', async () => {
      const reversed = Object.fromEntries(Object.entries(web()).reverse());
      expect(await readUid(reversed, { now: 0 })).toBe(await readUid(web()));
      expect(await readUid(`# a comment\n${stringify(web())}`)).toBe(await readUid(web()));
    });
    it.each<[string, Parameters<typeof read>]>([
      ['content', [web({ restartPolicy: 'Never' })]],
      ['annotation', [web({}, { annotations: { a: 'b' } })]],
      ['file', [web(), { file: 'other.yaml' }]],
      ['node', [web(), { nodeName: 'node-2' }]],
    ])('the UID depends on the %s', async (_, args) => {
      expect(await readUid(...args)).not.toBe(await readUid(web()));
    });
  });

  it.each<[string, object | string, string]>([
    ['no content', '', "couldn't parse as pod: it is not an object"],
    ['malformed YAML', 'a: [', "couldn't parse as pod: "],
    ['two documents', `${stringify(web())}---\n${stringify(web())}`, "couldn't parse as pod: "],
    ['another kind', { ...web(), kind: 'Service' }, 'invalid pod: it is of apiVersion v1 and kind Service'],
    ['another version', { ...web(), apiVersion: 'v2' }, 'invalid pod: it is of apiVersion v2 and kind Pod'],
    [
      'no kind',
      { metadata: { name: 'web' } },
      'invalid pod: it is of apiVersion "" and kind "", and must be of apiVersion v1 and kind Pod',
    ],
    ['no name', web({}, { name: '' }), 'invalid pod: name is needed for the pod'],
    ['a wrong type', web({ restartPolicy: 3 }), 'json: cannot unmarshal number into Go struct field'],
    ['no containers', web({ containers: [] }), 'invalid pod: spec.containers: Required value'],
    [
      'two errors',
      web({ containers: [{ name: 'A', image: 'x' }], restartPolicy: 'Sometimes' }),
      'invalid pod: [spec.containers[0].name: Invalid value: "A"',
    ],
    ['a ServiceAccount', web({ serviceAccountName: 'x' }), 'static pods may not reference serviceaccounts'],
    ['a Secret', web({ volumes: [{ name: 's', secret: { secretName: 'x' } }] }), 'may not reference secrets'],
    ['a ConfigMap', web({ volumes: [{ name: 's', configMap: { name: 'x' } }] }), 'may not reference configmaps'],
    ['ephemeral containers', web({ ephemeralContainers: [{ name: 'd', image: 'x' }] }), 'cannot be set on create'],
  ])('readManifest refuses a manifest with %s', async (_, content, message) => {
    await expect(read(content)).rejects.toThrow(ManifestError);
    await expect(read(content)).rejects.toThrow(message);
  });
});

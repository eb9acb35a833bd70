import { describe, expect, test } from 'vitest';
import { MIRROR_ANNOTATION } from '../../../../api/core/v1/pod/mirror.ts';
import type { PersistentVolume, Pod, PodSpec } from '../../../../api/generated/types.ts';
import { createNodeGraph } from './node-graph.ts';

const podOn = (nodeName: string | undefined, name: string, spec: Partial<PodSpec> = {}, annotations = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'ns', annotations },
  spec: { containers: [], ...(nodeName === undefined ? {} : { nodeName }), ...spec },
});
const withSecret = (secretName: string): Partial<PodSpec> => ({ volumes: [{ name: 'v', secret: { secretName } }] });
const withClaim = (claimName: string): Partial<PodSpec> => ({
  volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }],
});
const volume = (name: string, claim: string | undefined, spec: object = {}): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: { ...(claim === undefined ? {} : { claimRef: { namespace: 'ns', name: claim } }), ...spec },
});

describe('the relations of a node to objects', () => {
  test('a node is related to its Pods and to what they refer to, and other nodes are not', () => {
    const graph = createNodeGraph();
    graph.putPod(podOn('n1', 'a', { serviceAccountName: 'sa', ...withSecret('s') }));
    for (const [resource, name] of [
      ['pods', 'a'],
      ['secrets', 's'],
      ['serviceaccounts', 'sa'],
    ] as const) {
      expect(graph.relates('n1', resource, 'ns', name)).toBe(true);
      expect(graph.relates('n2', resource, 'ns', name)).toBe(false);
      expect(graph.relates('n1', resource, 'other', name)).toBe(false);
      expect(graph.relates('n1', resource, 'ns', 'other')).toBe(false);
    }
    expect(graph.relates('n1', 'configmaps', 'ns', 's')).toBe(false);
  });

  test('a Pod without a node relates nothing until it is bound', () => {
    const graph = createNodeGraph();
    graph.putPod(podOn(undefined, 'a', withSecret('s')));
    expect(graph.relates('n1', 'secrets', 'ns', 's')).toBe(false);
    graph.putPod(podOn('n1', 'a', withSecret('s')));
    expect(graph.relates('n1', 'secrets', 'ns', 's')).toBe(true);
  });

  test('the relation ends with the last Pod that refers to the object', () => {
    const graph = createNodeGraph();
    graph.putPod(podOn('n1', 'a', withSecret('s')));
    graph.putPod(podOn('n1', 'b', withSecret('s')));
    graph.removePod(podOn('n1', 'a'));
    expect(graph.relates('n1', 'secrets', 'ns', 's')).toBe(true);
    expect(graph.relates('n1', 'pods', 'ns', 'a')).toBe(false);
    graph.removePod(podOn('n1', 'b'));
    expect(graph.relates('n1', 'secrets', 'ns', 's')).toBe(false);
    graph.removePod(podOn('n1', 'b'));
    graph.putPod(podOn('n1', 'b', withSecret('s')));
    expect(graph.relates('n1', 'secrets', 'ns', 's')).toBe(true);
  });

  test('a changed Pod keeps what it still refers to, gains what an ephemeral container refers to, and moves with its node', () => {
    const graph = createNodeGraph();
    const debug = { name: 'debug', envFrom: [{ configMapRef: { name: 'c' } }] };
    graph.putPod(podOn('n1', 'a', withSecret('s')));
    graph.putPod(podOn('n1', 'a', { ...withSecret('s'), ephemeralContainers: [debug] }));
    expect(graph.relates('n1', 'secrets', 'ns', 's')).toBe(true);
    expect(graph.relates('n1', 'configmaps', 'ns', 'c')).toBe(true);
    // A Pod with the same name on another node replaces the Pod.
    graph.putPod(podOn('n2', 'a', withSecret('s')));
    expect(graph.relates('n1', 'secrets', 'ns', 's')).toBe(false);
    expect(graph.relates('n1', 'configmaps', 'ns', 'c')).toBe(false);
    expect(graph.relates('n2', 'secrets', 'ns', 's')).toBe(true);
  });

  test('a mirror Pod relates its node only to itself', () => {
    const graph = createNodeGraph();
    graph.putPod(podOn('n1', 'a', { serviceAccountName: 'sa', ...withSecret('s') }, { [MIRROR_ANNOTATION]: 'uid' }));
    expect(graph.relates('n1', 'pods', 'ns', 'a')).toBe(true);
    expect(graph.relates('n1', 'secrets', 'ns', 's')).toBe(false);
    expect(graph.relates('n1', 'serviceaccounts', 'ns', 'sa')).toBe(false);
  });

  test.each([
    ['before its Pod', true],
    ['after its Pod', false],
  ])(
    'a node is related to the PersistentVolume of a claim, which was reported %s, and to its Secrets',
    (_, isFirst) => {
      const graph = createNodeGraph();
      const spec = { csi: { driver: 'd', volumeHandle: 'h', nodeStageSecretRef: { namespace: 'storage', name: 's' } } };
      if (isFirst) graph.putVolume(volume('pv', 'claim', spec));
      graph.putPod(podOn('n1', 'a', withClaim('claim')));
      if (!isFirst) graph.putVolume(volume('pv', 'claim', spec));
      const related = () => [
        graph.relates('n1', 'persistentvolumeclaims', 'ns', 'claim'),
        graph.relates('n1', 'persistentvolumes', '', 'pv'),
        graph.relates('n1', 'secrets', 'storage', 's'),
      ];
      expect(related()).toEqual([true, true, true]);
      expect(graph.relates('n2', 'persistentvolumes', '', 'pv')).toBe(false);
      expect(graph.relates('n2', 'secrets', 'storage', 's')).toBe(false);
      graph.putVolume(volume('pv', undefined, spec));
      expect(related()).toEqual([true, false, false]);
      graph.putVolume(volume('pv', 'claim', spec));
      expect(related()).toEqual([true, true, true]);
      graph.putVolume(volume('pv', 'other', spec));
      expect(related()).toEqual([true, false, false]);
      graph.putVolume(volume('pv', 'claim', {}));
      expect(related()).toEqual([true, true, false]);
      graph.removeVolume(volume('pv', undefined));
      expect(related()).toEqual([true, false, false]);
    },
  );

  test.each<[string, object, boolean, string?]>([
    ['azureFile', { azureFile: { secretName: 's', shareName: 'x' } }, true],
    [
      'azureFile in another namespace',
      { azureFile: { secretName: 's', shareName: 'x', secretNamespace: 'o' } },
      true,
      'o',
    ],
    ['cephfs', { cephfs: { monitors: [], secretRef: { name: 's' } } }, true],
    ['iscsi in another namespace', { iscsi: { secretRef: { name: 's', namespace: 'o' } } }, true, 'o'],
    ['the driver on the node', { csi: { nodePublishSecretRef: { name: 's' } } }, true],
    ['the expansion on the node', { csi: { nodeExpandSecretRef: { name: 's' } } }, true],
    ['the driver on the controller', { csi: { controllerPublishSecretRef: { name: 's' } } }, false],
    ['the expansion on the controller', { csi: { controllerExpandSecretRef: { name: 's' } } }, false],
  ])('a Secret of a PersistentVolume is for the node: %s', (_, spec, expected, namespace = 'ns') => {
    const graph = createNodeGraph();
    graph.putPod(podOn('n1', 'a', withClaim('claim')));
    graph.putVolume(volume('pv', 'claim', spec));
    expect(graph.relates('n1', 'secrets', namespace, 's')).toBe(expected);
  });
});

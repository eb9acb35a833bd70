/** kubectl 1.20 reads OpenAPI only from /openapi/v2 in protobuf, and validates objects itself. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OLDER_KUBECTL } from '../support/kubectl.ts';
import { type KubectlFixture, startKubectlFixture } from './kubectl-fixture.ts';

const pod = (name: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: name } },
  spec: { containers: [{ name: 'main', image: 'busybox:1.28' }], ...spec },
});

describe.skipIf(OLDER_KUBECTL === undefined)('kubectl 1.20', () => {
  let fixture: KubectlFixture;
  beforeAll(async () => {
    fixture = await startKubectlFixture(OLDER_KUBECTL);
    expect(await fixture.ok('version', '--short')).toMatch(/^Client Version: v1\.20\./);
  });
  afterAll(() => fixture?.close());

  test('kubectl 1.20 explains built-in kinds, with a description at every level', async () => {
    const text = await fixture.ok('explain', 'pod.spec');
    expect(text).toMatch(/^RESOURCE: spec <Object>$/m);
    expect(text).toMatch(/^ {5}The desired state of the object\.\n\n {5}PodSpec is a description of a pod\.$/m);
    expect(text).toMatch(/^ {3}containers\t<\[\]Object> -required-$/m);
    expect(text).not.toContain('<no description>');
    expect(await fixture.ok('explain', 'pod.spec.containers.resources.limits')).toContain('<map[string]string>');
    expect(await fixture.ok('explain', 'pod.spec.deferContainers.onReasons')).toContain('<[]string>');
    expect(await fixture.ok('explain', 'runtimeclass.overhead.podFixed')).toContain('VERSION:  node.k8s.io/v1');
    expect(await fixture.ok('explain', 'pod', '--recursive')).toMatch(/^ +requiredDuring\w+\t<\[\]Object>$/m);
  });

  test('kubectl 1.20 makes a dry run on the server', async () => {
    expect(await fixture.apply(pod('dry'), '--dry-run=server')).toBe('pod/dry created (server dry run)\n');
    expect(await fixture.ok('create', 'configmap', 'dry', '--dry-run=server')).toBe(
      'configmap/dry created (server dry run)\n',
    );
    expect(await fixture.refused(['get', 'pod/dry', 'configmap/dry'])).toContain('pods "dry" not found');
  });

  test('kubectl 1.20 creates an object, and refuses one with an unknown field', async () => {
    const { out } = await fixture.kubectl(['create', '-f', '-'], { input: JSON.stringify(pod('created')) });
    expect(out).toBe('pod/created created\n');
    const wrong = JSON.stringify(pod('wrong', { nodename: 'a' }));
    expect(await fixture.refused(['create', '-f', '-'], wrong)).toContain(
      'ValidationError(Pod.spec): unknown field "nodename" in io.k8s.api.core.v1.PodSpec',
    );
  });

  test('kubectl 1.20 applies changes that merge lists by their keys', async () => {
    expect(await fixture.apply(pod('applied'))).toBe('pod/applied created\n');
    const changed = pod('applied', { containers: [{ name: 'main', image: 'busybox:1.29' }] });
    const { code, out } = await fixture.kubectl(['diff', '-f', '-'], { input: JSON.stringify(changed) });
    expect(code).toBe(1);
    expect(out).toMatch(/^-[ -]+image: busybox:1\.28\n\+[ -]+image: busybox:1\.29$/m);
    expect(await fixture.apply(changed)).toBe('pod/applied configured\n');
    const [container] = (await fixture.get('pod/applied')).spec.containers;
    expect(container).toMatchObject({ image: 'busybox:1.29', terminationMessagePolicy: 'File' });
    expect(await fixture.apply(changed, '--server-side', '--force-conflicts')).toBe('pod/applied serverside-applied\n');
  });

  test('kubectl 1.20 shows, changes and deletes objects', async () => {
    await fixture.apply(pod('shown'));
    expect(await fixture.ok('get', 'pods', '-l', 'app=shown')).toMatch(/^shown +0\/1 +Pending +0 +\d+s$/m);
    expect(await fixture.ok('get', 'pod', 'shown', '-o', 'yaml')).toContain('image: busybox:1.28');
    expect(await fixture.ok('describe', 'pod', 'shown')).toMatch(/^QoS Class: +BestEffort$/m);
    expect(await fixture.ok('label', 'pod', 'shown', 'tier=front')).toBe('pod/shown labeled\n');
    expect((await fixture.get('pod/shown')).metadata.labels).toEqual({ app: 'shown', tier: 'front' });
    expect(await fixture.ok('delete', 'pod', 'shown')).toBe('pod "shown" deleted\n');
  });
});

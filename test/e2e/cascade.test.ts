import { expect } from 'vitest';
import { pod, WAIT } from '../support/manifests.ts';
import { lifepod, test } from '../support/shared-engine.ts';

interface Owner {
  kind: 'ConfigMap' | 'Pod';
  name: string;
}

const uidOf = ({ kind, name }: Owner): Promise<string> =>
  lifepod.kubectlOk('get', kind, name, '-o', 'jsonpath={.metadata.uid}');

async function references(...owners: Owner[]): Promise<object[]> {
  const made = owners.map(async (owner) => ({
    apiVersion: 'v1',
    ...owner,
    uid: await uidOf(owner),
    blockOwnerDeletion: true,
  }));
  return Promise.all(made);
}

async function configMap(name: string, ...owners: Owner[]): Promise<Owner> {
  const ownerReferences = await references(...owners);
  await lifepod.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ownerReferences } });
  return { kind: 'ConfigMap', name };
}

async function ownedPod(name: string, owner: Owner): Promise<Owner> {
  const made = pod(name, { app: [{ name: 'app', script: WAIT }] });
  await lifepod.apply({ ...made, metadata: { name, ownerReferences: await references(owner) } });
  await lifepod.wait('--for=condition=Ready', `pod/${name}`);
  return { kind: 'Pod', name };
}

const remaining = (): Promise<string> =>
  lifepod.kubectlOk('get', 'configmaps,pods', '-o', 'name', '--field-selector=metadata.name!=kube-root-ca.crt');
const gone = (name: string): Promise<void> => lifepod.wait('--for=delete', name);

test('with --cascade=background, an owner is deleted at once, and its Pod and the dependents of the Pod afterwards', async () => {
  const owner = await configMap('owner');
  await configMap('child', await ownedPod('web', owner));
  await lifepod.delete('configmap', 'owner', '--cascade=background');
  await gone('configmap/child');
  expect(await remaining()).toBe('');
});

test('with --cascade=foreground, kubectl returns after the dependents have been deleted', async () => {
  const owner = await configMap('owner');
  await configMap('child', await ownedPod('web', owner));
  await configMap('other');
  await lifepod.kubectlOk('delete', 'configmap', 'owner', '--cascade=foreground');
  expect(await remaining()).toBe('configmap/other\n');
});

test('a Pod that is deleted with --cascade=foreground remains until its dependents have been deleted', async () => {
  await configMap('owner');
  const web = await ownedPod('web', { kind: 'ConfigMap', name: 'owner' });
  await configMap('held', web);
  await lifepod.kubectlOk(
    'patch',
    'configmap',
    'held',
    '--type=merge',
    '-p',
    '{"metadata":{"finalizers":["x.io/hold"]}}',
  );
  await lifepod.delete('pod', 'web', '--cascade=foreground', '--wait=false');
  await lifepod.kubectlOk(
    'wait',
    '--for=jsonpath={.metadata.deletionGracePeriodSeconds}=0',
    'pod/web',
    '--timeout=60s',
  );
  expect(await lifepod.kubectlOk('get', 'pod', 'web', '-o', 'jsonpath={.metadata.finalizers}')).toBe(
    '["foregroundDeletion"]',
  );
  await lifepod.kubectlOk('patch', 'configmap', 'held', '--type=merge', '-p', '{"metadata":{"finalizers":[]}}');
  await gone('pod/web');
  expect(await remaining()).toBe('configmap/owner\n');
});

test('with --cascade=orphan, the dependents remain without a reference to the owner', async () => {
  const owner = await configMap('owner');
  await ownedPod('web', owner);
  await lifepod.delete('configmap', 'owner', '--cascade=orphan');
  expect(await remaining()).toBe('pod/web\n');
  expect(await lifepod.kubectlOk('get', 'pod', 'web', '-o', 'jsonpath={.metadata.ownerReferences}')).toBe('');
});

test('a dependent of two owners remains until both are deleted', async () => {
  await configMap('one');
  await configMap('two');
  await configMap('child', { kind: 'ConfigMap', name: 'one' }, { kind: 'ConfigMap', name: 'two' });
  await lifepod.delete('configmap', 'one');
  await lifepod.kubectlOk(
    'wait',
    '--for=jsonpath={.metadata.ownerReferences[0].name}=two',
    'configmap/child',
    '--timeout=60s',
  );
  await lifepod.delete('configmap', 'two');
  await gone('configmap/child');
  expect(await remaining()).toBe('');
});

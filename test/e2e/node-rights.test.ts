import { createPrivateKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { parse } from 'yaml';
import { makeLeaf } from '../../src/apiserver/pki/certificates.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { lifepod, testInFileNamespace as test } from '../support/shared-engine.ts';

const kubeconfigs = new Map<string, string>();

/** Uses the certificate of the node. Resolves with the output, or the error. */
async function as(node: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await lifepod.kubectl('--kubeconfig', kubeconfigs.get(node) ?? '', ...args);
  return code === 0 ? stdout.trim() : stderr.trim();
}

let own: string;

test.beforeAll(async () => {
  own = (await lifepod.kubectlOk('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}')).trim();
  const pki = join(lifepod.dataDir, 'pki');
  const authority = {
    certificate: readFileSync(join(pki, 'ca.crt'), 'utf8'),
    key: createPrivateKey(readFileSync(join(pki, 'ca.key'))),
  };
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  for (const node of [own, 'other']) {
    const subject = { commonName: `system:node:${node}`, organization: 'system:nodes', usage: 'client' as const };
    const { certificate, key } = await makeLeaf(authority, subject, Date.now());
    const config = parse(readFileSync(lifepod.kubeconfig, 'utf8'));
    config.users[0].user = { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) };
    const path = join(lifepod.dataDir, `${node}.kubeconfig`);
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
    kubeconfigs.set(node, path);
  }
  const { kubectlOk } = lifepod;
  await kubectlOk('create', 'secret', 'generic', 'used', '--from-literal=key=value');
  await kubectlOk('create', 'secret', 'generic', 'unused', '--from-literal=key=value');
});

const NO_RELATION = (node: string) => `no relationship found between node '${node}' and this object`;

describe('the user of a node', () => {
  test('reads the Secrets that its Pods use, while these exist, and no others', async () => {
    const env = [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'used', key: 'key' } } }];
    expect(await as(own, 'get', 'secret', 'used', '-o', 'name')).toContain(NO_RELATION(own));
    await lifepod.apply(pod('uses', { app: [{ name: 'app', script: WAIT, env }], spec: { nodeName: own } }));
    expect(await as(own, 'get', 'secret', 'used', '-o', 'name')).toBe('secret/used');
    expect(await as(own, 'get', 'secret', 'unused')).toBe(
      `Error from server (Forbidden): secrets "unused" is forbidden: User "system:node:${own}" cannot get resource "secrets" in API group "" in the namespace "${lifepod.namespace}": ${NO_RELATION(own)}`,
    );
    expect(await as('other', 'get', 'secret', 'used')).toContain(NO_RELATION('other'));
    expect(await as(own, 'get', 'secrets')).toContain('No Object name found');
    expect(await as(own, 'get', 'pods', '--field-selector', `spec.nodeName=${own}`, '-o', 'name')).toBe('pod/uses');
    expect(await as(own, 'get', 'pods')).toContain('can only list/watch pods with spec.nodeName field selector');
    await lifepod.delete('pod', 'uses', '--grace-period=0', '--force');
    expect(await as(own, 'get', 'secret', 'used')).toContain(NO_RELATION(own));
  });

  test('changes neither other nodes nor its own labels and taints that attract or repel Pods', async () => {
    const node = JSON.stringify(await lifepod.get('node', own));
    const config = ['--kubeconfig', kubeconfigs.get('other') ?? ''];
    const put = await lifepod.kubectlInput(
      node,
      'replace',
      '--raw',
      `/api/v1/nodes/${own}/status`,
      '-f',
      '-',
      ...config,
    );
    expect(put.stderr).toContain(`node "other" is not allowed to modify node "${own}"`);
    expect(await as(own, 'label', 'node', own, 'node-role.kubernetes.io/control-plane=')).toContain(
      'is not allowed to modify labels: node-role.kubernetes.io/control-plane',
    );
    expect(await as(own, 'taint', 'node', own, 'a=b:NoSchedule')).toContain('is not allowed to modify taints');
    expect(await as(own, 'label', 'node', own, 'topology.kubernetes.io/zone=z')).toContain('labeled');
    expect(await as(own, 'label', 'node', own, 'topology.kubernetes.io/zone-')).toContain('unlabeled');
    expect(await as(own, 'delete', 'node', own)).toContain('cannot delete resource "nodes"');
    expect(await as(own, 'get', 'nodes')).toContain('cannot read all nodes, only its own Node object');
  });
});

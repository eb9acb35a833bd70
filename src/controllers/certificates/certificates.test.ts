import { createPrivateKey, X509Certificate } from 'node:crypto';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CertificateSigningRequest } from '../../api/generated/types.ts';
import { CERTIFICATE_SIGNING_REQUESTS, CLUSTER_ROLE_BINDINGS } from '../../api/resources.ts';
import { createAuthority } from '../../apiserver/pki/authority.ts';
import { makeAuthority } from '../../apiserver/pki/certificates.ts';
import { makeRequest } from '../../apiserver/pki/request-fixture.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { apiFor } from '../../ports/api-for.ts';
import { type Attributes, isPath } from '../../ports/authorizer.ts';
import { startCertificates } from './certificates.ts';

const MINUTE = 60 * 1000;
const HOUR = 60 * MINUTE;
const KUBELET = 'kubernetes.io/kube-apiserver-client-kubelet';
const CLIENT = ['digital signature', 'key encipherment', 'client auth'];

let backend: RegistryBackend;
let timers: VirtualTimers;
let stop: AbortController;
let ca: { certificate: string; key: string };
/** The rights to create subresources, each as `SUBRESOURCE USER`. */
let rights: string[];
beforeAll(async () => {
  ca = await makeAuthority('test', createVirtualTimers().now());
});
beforeEach(async () => {
  timers = createVirtualTimers();
  backend = await registryBackend({ timers });
  stop = new AbortController();
  rights = [];
  const options = withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal });
  const pki = { caCertificate: ca.certificate, caKey: createPrivateKey(ca.key) };
  await startCertificates({
    ...options,
    authority: createAuthority(pki, 24 * HOUR, timers.now),
    authorizer: {
      authorize: async (asked: Attributes) => ({
        allowed:
          !isPath(asked) && asked.verb === 'create' && rights.includes(`${asked.subresource} ${asked.user.name}`),
        reason: '',
      }),
    },
  });
});
afterEach(() => stop.abort());

async function create(user: string, subject: string, spec: Partial<CertificateSigningRequest['spec']> = {}) {
  const { request } = await makeRequest(subject);
  await apiFor(backend.serving, { name: user, groups: ['a'] }).create(CERTIFICATE_SIGNING_REQUESTS, undefined, {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'one' },
    spec: { request, signerName: KUBELET, usages: CLIENT, ...spec },
  } as CertificateSigningRequest);
}
const current = (): CertificateSigningRequest | undefined =>
  backend.objects(CERTIFICATE_SIGNING_REQUESTS)[0] as CertificateSigningRequest | undefined;
const shown = (): string[] => [
  ...(current()?.status?.conditions ?? []).map(({ type, reason, message }) => `${type} ${reason}: ${message}`),
  ...(current()?.status?.certificate === undefined ? [] : ['issued']),
];
async function decide(type: 'Approved' | 'Denied'): Promise<void> {
  const request = (await backend.get(CERTIFICATE_SIGNING_REQUESTS, undefined, 'one')) as CertificateSigningRequest;
  const conditions = [{ type, status: 'True', reason: 'Mine', message: 'by hand' }];
  const decided = { ...request, status: { conditions } } as CertificateSigningRequest;
  await backend.update(CERTIFICATE_SIGNING_REQUESTS, decided, { subresource: 'approval' });
}

describe('the request of a node', () => {
  test('is approved and signed if its sender may create node clients', async () => {
    rights = ['nodeclient system:bootstrap:abcdef'];
    await create('system:bootstrap:abcdef', 'O=system:nodes, CN=system:node:n1', { expirationSeconds: 3600 });
    const message = 'Auto approving kubelet client certificate after SubjectAccessReview.';
    await expect.poll(shown).toEqual([`Approved AutoApproved: ${message}`, 'issued']);
    const certificate = new X509Certificate(Buffer.from(current()?.status?.certificate ?? '', 'base64'));
    expect(certificate.subject).toBe('O=system:nodes\nCN=system:node:n1');
    expect(Date.parse(certificate.validTo)).toBe(timers.now() + HOUR);
  });

  test('for itself is approved if it may renew its certificate', async () => {
    rights = ['selfnodeclient system:node:n1'];
    await create('system:node:n1', 'O=system:nodes, CN=system:node:n1');
    const message = 'Auto approving self kubelet client certificate after SubjectAccessReview.';
    await expect.poll(shown).toEqual([`Approved AutoApproved: ${message}`, 'issued']);
  });

  test('for another node is not approved, until its sender gets the right', async () => {
    rights = ['selfnodeclient system:node:n1'];
    await create('system:node:n1', 'O=system:nodes, CN=system:node:n2');
    await decide('Denied').then(() => backend.remove(CERTIFICATE_SIGNING_REQUESTS, undefined, 'one'));
    await create('system:node:n1', 'O=system:nodes, CN=system:node:n2');
    rights.push('nodeclient system:node:n1');
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'a' };
    await backend.set(CLUSTER_ROLE_BINDINGS, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'a' },
      roleRef,
    } as never);
    await expect.poll(shown).toContain('issued');
  });
});

describe('an approved request', () => {
  test('that its signer refuses fails, and is not signed', async () => {
    await create('jane', 'CN=jane');
    await decide('Approved');
    await expect
      .poll(shown)
      .toEqual(['Approved Mine: by hand', 'Failed SignerValidationFailure: subject organization is not system:nodes']);
  });

  test('has a certificate with the usages that it names', async () => {
    const signerName = 'kubernetes.io/kube-apiserver-client';
    await create('jane', 'O=developers, CN=jane', { signerName, usages: ['client auth'] });
    await decide('Approved');
    await expect.poll(shown).toEqual(['Approved Mine: by hand', 'issued']);
    const certificate = new X509Certificate(Buffer.from(current()?.status?.certificate ?? '', 'base64'));
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(Date.parse(certificate.validTo)).toBe(timers.now() + 24 * HOUR - 5 * MINUTE);
  });

  test('is signed once, although a write fails', async () => {
    backend.failNext('update certificatesigningrequests/status', new Error('not now'));
    await create('jane', 'CN=jane', { signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] });
    await decide('Approved');
    await expect.poll(() => backend.calls.filter((call) => call.includes('/status')).length).toBe(1);
    timers.advance(MINUTE);
    await expect.poll(shown).toContain('issued');
  });
});

describe('a request is deleted', () => {
  const passed = async (millis: number): Promise<void> => {
    timers.advance(millis);
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  };
  const other = { signerName: 'example.com/a', usages: ['any'] };

  test('24 hours after its creation if no one decides about it', async () => {
    await create('jane', 'CN=jane', other);
    await passed(24 * HOUR - 1);
    expect(current()).toBeDefined();
    await passed(1);
    await expect.poll(current).toBeUndefined();
  });

  test('an hour after it was denied', async () => {
    await create('jane', 'CN=jane', other);
    await passed(HOUR);
    await decide('Denied');
    await passed(HOUR - 1);
    expect(current()).toBeDefined();
    await passed(1);
    await expect.poll(current).toBeUndefined();
  });

  test('an hour after it was approved, but not before its signer has issued the certificate', async () => {
    await create('jane', 'CN=jane', other);
    await decide('Approved');
    await passed(30 * HOUR);
    const request = current();
    expect(request).toBeDefined();
    const certificate = Buffer.from(ca.certificate).toString('base64');
    const issued = { ...request, status: { ...request?.status, certificate } } as CertificateSigningRequest;
    await backend.update(CERTIFICATE_SIGNING_REQUESTS, issued, { subresource: 'status' });
    await expect.poll(current).toBeUndefined();
  });

  test('when its certificate has expired', async () => {
    const own = { signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'], expirationSeconds: 600 };
    await create('jane', 'CN=jane', own);
    await decide('Approved');
    await expect.poll(shown).toContain('issued');
    await passed(10 * MINUTE);
    await expect.poll(current).toBeUndefined();
  });
});

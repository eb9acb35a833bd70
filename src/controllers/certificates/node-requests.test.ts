import { describe, expect, test } from 'vitest';
import type { CertificateSigningRequest } from '../../api/generated/types.ts';
import type { CertificateRequest } from '../../ports/certificates.ts';
import { automaticApprovals } from './node-requests.ts';
import { SIGNERS } from './signers.ts';

const none: CertificateRequest = {
  commonName: 'system:node:n1',
  organizations: ['system:nodes'],
  dnsNames: [],
  ips: [],
  emails: [],
  uris: [],
};
const CLIENT = ['digital signature', 'key encipherment', 'client auth'];
const SERVER = ['digital signature', 'key encipherment', 'server auth'];

const errorsOf = (signer: string) => (contents: Partial<CertificateRequest>, usages: string[]) =>
  SIGNERS.get(`kubernetes.io/${signer}`)?.({ ...none, ...contents }, usages);

describe('the signer kube-apiserver-client-kubelet', () => {
  test.each<[string, Partial<CertificateRequest>, string[], string | undefined]>([
    ['a node', {}, CLIENT, undefined],
    ['a node without an RSA key', {}, ['client auth', 'digital signature'], undefined],
    ['another group', { organizations: ['a'] }, CLIENT, 'subject organization is not system:nodes'],
    ['a second group', { organizations: ['system:nodes', 'a'] }, CLIENT, 'subject organization is not system:nodes'],
    ['a DNS name', { dnsNames: ['a'] }, CLIENT, 'DNS subjectAltNames are not allowed'],
    ['an email address', { emails: ['a'] }, CLIENT, 'Email subjectAltNames are not allowed'],
    ['an IP address', { ips: ['192.0.2.1'] }, CLIENT, 'IP subjectAltNames are not allowed'],
    ['a URI', { uris: ['a:b'] }, CLIENT, 'URI subjectAltNames are not allowed'],
    ['another name', { commonName: 'n1' }, CLIENT, 'subject common name does not begin with system:node:'],
    ['other usages', {}, SERVER, 'usages did not match [client auth digital signature key encipherment]'],
    ['too few usages', {}, ['client auth'], 'usages did not match [client auth digital signature key encipherment]'],
  ])('judges a request with %s', (_, contents, usages, error) => {
    expect(errorsOf('kube-apiserver-client-kubelet')(contents, usages)).toBe(error);
  });
});

describe('the signer kubelet-serving', () => {
  test.each<[string, Partial<CertificateRequest>, string[], string | undefined]>([
    ['a DNS name', { dnsNames: ['a'] }, SERVER, undefined],
    ['an IP address', { ips: ['192.0.2.1'] }, ['server auth', 'digital signature'], undefined],
    ['no name', {}, SERVER, 'DNS or IP subjectAltName is required'],
    ['an email address', { dnsNames: ['a'], emails: ['a'] }, SERVER, 'Email subjectAltNames are not allowed'],
    ['a URI', { dnsNames: ['a'], uris: ['a:b'] }, SERVER, 'URI subjectAltNames are not allowed'],
    ['another group', { dnsNames: ['a'], organizations: [] }, SERVER, 'subject organization is not system:nodes'],
    [
      'another name',
      { dnsNames: ['a'], commonName: 'n' },
      SERVER,
      'subject common name does not begin with system:node:',
    ],
    [
      'other usages',
      { dnsNames: ['a'] },
      CLIENT,
      'usages did not match [digital signature key encipherment server auth]',
    ],
  ])('judges a request with %s', (_, contents, usages, error) => {
    expect(errorsOf('kubelet-serving')(contents, usages)).toBe(error);
  });
});

test.each<[string[], string | undefined]>([
  [['client auth'], undefined],
  [CLIENT, undefined],
  [['client auth', 'server auth'], 'invalid usage for client certificate: server auth'],
  [['digital signature'], 'missing required usage for client certificate: client auth'],
])('the signer kube-apiserver-client judges the usages %j', (usages, error) => {
  expect(errorsOf('kube-apiserver-client')({ commonName: 'jane', organizations: ['a'] }, usages)).toBe(error);
});

test('nothing is signed for other signers', () => {
  expect([...SIGNERS.keys()].sort()).toEqual([
    'kubernetes.io/kube-apiserver-client',
    'kubernetes.io/kube-apiserver-client-kubelet',
    'kubernetes.io/kubelet-serving',
  ]);
});

test.each<[string, string, Partial<CertificateRequest>, string[]]>([
  ['a node that asks for itself', 'system:node:n1', {}, ['selfnodeclient', 'nodeclient']],
  ['a bootstrap token', 'system:bootstrap:abcdef', {}, ['nodeclient']],
  ['a node that asks for another user', 'system:node:n1', { organizations: [] }, []],
])('the rights by which the request of %s is approved', (_, username, contents, expected) => {
  const request = { spec: { username, usages: CLIENT } } as CertificateSigningRequest;
  const approvals = automaticApprovals(request, { ...none, ...contents });
  expect(approvals.map(({ subresource }) => subresource)).toEqual(expected);
});

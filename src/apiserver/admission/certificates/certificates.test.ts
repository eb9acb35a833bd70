import { beforeEach, describe, expect, test } from 'vitest';
import type { CertificateSigningRequest } from '../../../api/generated/types.ts';
import { CERTIFICATE_SIGNING_REQUESTS } from '../../../api/resources.ts';
import { apiFor } from '../../../ports/api-for.ts';
import { isPath } from '../../../ports/authorizer.ts';
import type { UserInfo } from '../../../ports/request.ts';
import { makeAuthority } from '../../pki/certificates.ts';
import { encoded, makeRequest } from '../../pki/request-fixture.ts';
import type { Registry } from '../../registry/registry.ts';
import { failure, startRegistry } from '../../registry/testing.ts';

const SIGNER = 'kubernetes.io/kube-apiserver-client';
const JANE: UserInfo = { name: 'jane', uid: '7', groups: ['developers'], extra: { a: ['b'] } };

let backend: Registry;
/** The granted rights, such as `approve example.com/*`. */
let rights: string[];
beforeEach(async () => {
  rights = [];
  const authorizer = {
    authorize: async (asked: Parameters<typeof isPath>[0]) => ({
      allowed: !isPath(asked) && asked.resource === 'signers' && rights.includes(`${asked.verb} ${asked.name}`),
      reason: '',
    }),
    rulesFor: async () => ({ roles: [], errors: [] }),
  };
  ({ backend } = await startRegistry({ authorizer: { ...authorizer } }));
});

const as = (user: UserInfo) => apiFor(backend, user);

async function request(fields: object = {}, subject = 'CN=jane'): Promise<CertificateSigningRequest> {
  const { request: text } = await makeRequest(subject);
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'one' },
    spec: { request: text, signerName: SIGNER, usages: ['client auth'], ...fields },
  };
}
const create = async (body: CertificateSigningRequest, user = JANE): Promise<CertificateSigningRequest> =>
  (await as(user).create(CERTIFICATE_SIGNING_REQUESTS, undefined, body)) as CertificateSigningRequest;
const write = (user: UserInfo, object: CertificateSigningRequest, subresource: string) =>
  as(user).update(CERTIFICATE_SIGNING_REQUESTS, object, { subresource });

describe('a new CertificateSigningRequest', () => {
  test('a new CertificateSigningRequest names the user who sends it, whatever the client has sent', async () => {
    const sent = { username: 'root', uid: '0', groups: ['system:masters'], extra: { c: ['d'] } };
    const { spec } = await create(await request(sent));
    expect(spec).toMatchObject({ username: 'jane', uid: '7', groups: ['developers'], extra: { a: ['b'] } });
    expect(spec.extra).toEqual(JANE.extra);
    const other = await request(sent);
    other.metadata.name = 'two';
    const plain = (await create(other, { name: 'john', groups: [] })).spec;
    expect([plain.username, plain.uid, plain.extra]).toEqual(['john', undefined, undefined]);
  });

  test('a new CertificateSigningRequest is refused if its spec.request is not valid', async () => {
    expect(await failure(create(await request({ request: encoded('x') })))).toEqual({
      code: 422,
      reason: 'Invalid',
      message:
        'CertificateSigningRequest.certificates.k8s.io "one" is invalid: spec.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST',
    });
  });

  test('a new CertificateSigningRequest cannot ask the signer of clients for the group system:masters', async () => {
    expect(await failure(create(await request({}, 'O=a, O=system:masters, CN=jane')))).toMatchObject({
      code: 403,
      message: `certificatesigningrequests.certificates.k8s.io "one" is forbidden: use of ${SIGNER} signer with system:masters group is not allowed`,
    });
    await create(await request({ signerName: 'example.com/a' }, 'O=system:masters, CN=jane'));
  });
});

const decided = (of: CertificateSigningRequest, type: string): CertificateSigningRequest => ({
  ...of,
  status: { ...of.status, conditions: [...(of.status?.conditions ?? []), { type, status: 'True', reason: 'a' }] },
});

describe('a right about a signer', () => {
  test.each(['Approved', 'Denied'])('the condition %s requires the right to approve for the signer', async (type) => {
    const created = await create(await request());
    expect(await failure(write(JANE, decided(created, type), 'approval'))).toMatchObject({
      code: 403,
      message: `certificatesigningrequests.certificates.k8s.io "one" is forbidden: user not permitted to approve requests with signerName "${SIGNER}"`,
    });
    rights = ['approve kubernetes.io/*'];
    expect(await write(JANE, decided(created, type), 'approval')).toMatchObject({ status: { conditions: [{ type }] } });
  });

  test('changes of the certificate and the conditions require the right to sign for the signer, and other changes of the status do not', async () => {
    const created = await create(await request());
    const { certificate } = await makeAuthority('test', Date.now());
    const issued = { ...created, status: { certificate: encoded(certificate) } };
    const refused = `user not permitted to sign requests with signerName "${SIGNER}"`;
    expect((await failure(write(JANE, issued, 'status'))).message).toContain(refused);
    expect((await failure(write(JANE, decided(created, 'Failed'), 'status'))).message).toContain(refused);
    const labelled = { ...created, metadata: { ...created.metadata, labels: { a: 'b' } } };
    await write(JANE, labelled, 'status');
    rights = [`sign ${SIGNER}`];
    const { resourceVersion: _, ...metadata } = issued.metadata;
    expect(await write(JANE, { ...issued, metadata }, 'status')).toMatchObject({ status: issued.status });
  });
});

const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBfTCCASOgAwIBAgIBATAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDAR0ZXN0MB4X
-----END CERTIFICATE-----
`;

test.each([
  ['a', 'must contain at least one CERTIFICATE PEM block'],
  [
    CERTIFICATE.replaceAll('CERTIFICATE', 'PRIVATE KEY'),
    'only CERTIFICATE PEM blocks are allowed, found "PRIVATE KEY"',
  ],
  [CERTIFICATE.replace('\n', '\na: b\n\n'), 'no PEM block headers are permitted'],
  [CERTIFICATE, 'x509: malformed certificate'],
  // The search for the end of a block is slow for long types, so types of more than 100 characters are not recognized.
  [CERTIFICATE.replaceAll('CERTIFICATE', 'A'.repeat(101)), 'must contain at least one CERTIFICATE PEM block'],
])('the certificate %j is refused', async (text, cause) => {
  const created = await create(await request());
  rights = [`sign ${SIGNER}`];
  const refused = await failure(write(JANE, { ...created, status: { certificate: encoded(text) } }, 'status'));
  expect(refused.message).toBe(
    `CertificateSigningRequest.certificates.k8s.io "one" is invalid: status.certificate: Invalid value: "<certificate data>": ${cause}`,
  );
});

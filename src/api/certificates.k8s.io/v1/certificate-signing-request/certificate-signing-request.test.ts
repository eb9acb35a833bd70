import { describe, expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from '../../../generated/types.ts';
import { created, headings, NOW, row, updated } from '../../../testing.ts';
import { certificateSigningRequestKind } from './index.ts';

const spec = {
  request: 'YQ==',
  signerName: 'kubernetes.io/kube-apiserver-client',
  usages: ['client auth'],
  username: 'jane',
};
test.each<[string, object, string[]]>([
  ['a valid spec', {}, []],
  ['a lifetime of 10 minutes', { expirationSeconds: 600 }, []],
  [
    'a shorter lifetime',
    { expirationSeconds: 599 },
    ['spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)'],
  ],
  ['no usages', { usages: [] }, ['spec.usages: Required value']],
  ['a usage twice', { usages: ['client auth', 'client auth'] }, ['spec.usages[1]: Duplicate value: "client auth"']],
  [
    'the legacy signer',
    { signerName: 'kubernetes.io/legacy-unknown' },
    [
      'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version',
    ],
  ],
  [
    'no signer',
    { signerName: '' },
    [
      'spec.signerName: Required value',
      `spec.signerName: Invalid value: "": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
    ],
  ],
  [
    'a signer with a single label as its domain',
    { signerName: 'example/a' },
    ['spec.signerName: Invalid value: "example": should be a domain with at least two segments separated by dots'],
  ],
  ['a signer of another domain', { signerName: 'example.com/a.b' }, []],
])('the errors of a CertificateSigningRequest with %s', (_, fields, errors) => {
  expect(created(certificateSigningRequestKind, { spec: { ...spec, ...fields } }).errors).toEqual(errors);
});

test('the errors of unknown usages and of invalid labels of a signer name what is wrong', () => {
  const { errors } = created(certificateSigningRequestKind, {
    spec: { ...spec, usages: ['x'], signerName: 'A.example/b_' },
  });
  expect(errors[0]).toMatch(/^spec.usages\[0\]: Unsupported value: "x": supported values: "any", "cert sign", /);
  expect(errors[1]).toMatch(/^spec.signerName: Invalid value: "A.example": validating label "A": a lowercase RFC 1123/);
  expect(errors[2]).toMatch(/^spec.signerName: Invalid value: "b_": validating label "b_": a lowercase RFC 1123 sub/);
  expect(errors).toHaveLength(3);
});

it('a new request has no status, and an update changes neither spec nor status', () => {
  const status = { conditions: [{ type: 'Approved', status: 'True' }] };
  expect(created(certificateSigningRequestKind, { spec, status }).object.status).toEqual({});
  const { object } = updated(
    certificateSigningRequestKind,
    { spec },
    { metadata: { labels: { a: 'b' } }, spec: { ...spec, username: 'root' }, status },
  );
  expect(object).toMatchObject({ metadata: { labels: { a: 'b' } }, spec, status: {} });
});

const condition = (
  type: string,
  more: Partial<CertificateSigningRequestCondition> = {},
): CertificateSigningRequestCondition => ({ type, status: 'True', ...more });

function written(
  subresource: 'status' | 'approval',
  old: CertificateSigningRequest['status'],
  status: CertificateSigningRequest['status'],
) {
  const metadata = { name: 'a', resourceVersion: '1', uid: 'u' };
  const request = (of: CertificateSigningRequest['status']) =>
    ({
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata,
      spec,
      status: of,
    }) as CertificateSigningRequest;
  const { apply, validate } = certificateSigningRequestKind.subresources[subresource] ?? {};
  const before = request(old);
  const object = apply?.(before, { ...request(status), spec: { ...spec, username: 'root' } } as never, { now: NOW });
  if (object === undefined) throw new Error('not applied');
  expect(object.spec).toEqual(spec);
  return { object, errors: (validate?.(object, before) ?? []).map(fieldErrorText) };
}

describe('the subresource approval', () => {
  it('the subresource approval changes only the conditions, and sets their times', () => {
    const { object, errors } = written('approval', { certificate: 'YQ==' }, { conditions: [condition('Approved')] });
    expect(errors).toEqual([]);
    expect(object.status).toEqual({
      certificate: 'YQ==',
      conditions: [
        condition('Approved', { lastUpdateTime: '2026-01-31T12:00:00Z', lastTransitionTime: '2026-01-31T12:00:00Z' }),
      ],
    });
  });

  it('the subresource approval keeps the transition time of a condition that remains', () => {
    const old = condition('Approved', { lastUpdateTime: 'a', lastTransitionTime: 'b' });
    const { object } = written('approval', { conditions: [old] }, { conditions: [condition('Approved')] });
    expect(object.status?.conditions).toEqual([
      condition('Approved', { lastUpdateTime: '2026-01-31T12:00:00Z', lastTransitionTime: 'b' }),
    ]);
  });

  it.each<[string, string[], string[], string[]]>([
    ['a denial', [], ['Denied'], []],
    [
      'an approval and a denial',
      ['Approved'],
      ['Approved', 'Denied'],
      ['status.conditions[1].type: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'],
    ],
    [
      'a condition twice',
      ['Approved'],
      ['Approved', 'Approved'],
      ['status.conditions[1].type: Duplicate value: "Approved"'],
    ],
    [
      'the removal of a decision',
      ['Denied'],
      [],
      ['status.conditions: Forbidden: updates may not remove a condition of type "Denied"'],
    ],
    ['a condition without a type', [], [''], ['status.conditions[0].type: Required value']],
  ])('the subresource approval validates %s', (_, from, to, errors) => {
    const conditions = (types: string[]) => ({ conditions: types.map((type) => condition(type)) });
    expect(written('approval', conditions(from), conditions(to)).errors).toEqual(errors);
  });

  it('the subresource approval allows only True as the status of a decision', () => {
    const sent = [condition('Approved', { status: 'False' }), condition('Mine', { status: 'x' }), { type: 'Other' }];
    expect(written('approval', {}, { conditions: sent as CertificateSigningRequestCondition[] }).errors).toEqual([
      'status.conditions[0].status: Unsupported value: "False": supported values: "True"',
      'status.conditions[1].status: Unsupported value: "x": supported values: "False", "True", "Unknown"',
      'status.conditions[2].status: Required value',
    ]);
  });
});

describe('the subresource status', () => {
  it('the subresource status neither approves nor denies a request', () => {
    for (const type of ['Approved', 'Denied']) {
      expect(written('status', {}, { conditions: [condition(type)] }).errors).toEqual([
        `status.conditions: Forbidden: updates may not add a condition of type "${type}"`,
      ]);
    }
    const changed = { conditions: [condition('Approved', { message: 'other' })] };
    expect(written('status', { conditions: [condition('Approved')] }, changed).errors).toEqual([
      'status.conditions: Forbidden: updates may not modify a condition of type "Approved"',
    ]);
  });

  it('the subresource status adds the condition Failed, which remains', () => {
    const failed = { conditions: [condition('Failed', { lastTransitionTime: 'b', lastUpdateTime: 'a' })] };
    expect(written('status', {}, failed)).toMatchObject({ object: { status: failed }, errors: [] });
    expect(written('status', failed, {}).errors).toEqual([
      'status.conditions: Forbidden: updates may not remove a condition of type "Failed"',
    ]);
  });

  it('the subresource status writes a certificate once', () => {
    expect(written('status', {}, { certificate: 'YQ==' }).errors).toEqual([]);
    expect(written('status', { certificate: 'YQ==' }, { certificate: 'YQ==' }).errors).toEqual([]);
    expect(written('status', { certificate: 'YQ==' }, {}).errors).toEqual([
      'status.certificate: Forbidden: updates may not modify existing certificate content',
    ]);
  });

  it('the subresource status limits the size of a certificate', () => {
    const certificate = Buffer.alloc(64 * 1024 + 1).toString('base64');
    expect(written('status', {}, { certificate }).errors).toEqual([
      'status.certificate: Too long: may not be more than 65536 bytes',
    ]);
  });
});

test('the table shows the signer, the requestor, the requested duration and the conditions', () => {
  expect(headings(certificateSigningRequestKind).all).toBe(
    'NAME | AGE | SIGNERNAME | REQUESTOR | REQUESTEDDURATION | CONDITION',
  );
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  const cells = (fields: object, status: object) =>
    row(certificateSigningRequestKind, { metadata, spec: { ...spec, ...fields }, status }).slice(3);
  expect(row(certificateSigningRequestKind, { metadata, spec })).toEqual([
    'a',
    '60s',
    'kubernetes.io/kube-apiserver-client',
    'jane',
    '<none>',
    'Pending',
  ]);
  const conditions = [condition('Approved')];
  expect(cells({ expirationSeconds: 86400 }, { conditions, certificate: 'YQ==' })).toEqual([
    'jane',
    '24h',
    'Approved,Issued',
  ]);
  expect(cells({}, { conditions: [...conditions, condition('Failed')] }).at(-1)).toBe('Approved,Failed');
  expect(cells({}, { conditions: [condition('Denied')] }).at(-1)).toBe('Denied');
});

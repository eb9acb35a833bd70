/**
 * A user who approves or denies a CertificateSigningRequest needs the right to `approve` for its signer. A user who changes the certificate
 * or the conditions in its status needs the right to `sign` for its signer.
 * Source: the plugins CertificateApproval and CertificateSigning of v1.33 (behavior and wording).
 */
import type { CertificateSigningRequest } from '../../../api/generated/types.ts';
import { CERTIFICATE_SIGNING_REQUESTS } from '../../../api/resources.ts';
import { invalid } from '../../../machinery/field-error.ts';
import { type JsonValue, jsonEqual } from '../../../machinery/json-value.ts';
import { forbidden, invalidObject } from '../../../machinery/status.ts';
import type { Authorizer } from '../../../ports/authorizer.ts';
import type { AdmissionPlugin, AdmissionRequest, PluginFactory } from '../plugin.ts';
import { isKindOf } from '../targets.ts';
import { certificateError } from './issued-certificate.ts';

export const certificateApproval: PluginFactory = ({ authorizer }) =>
  plugin('CertificateApproval', 'approval', (request) => check(authorizer, request, 'approve'));

export const certificateSigning: PluginFactory = ({ authorizer }) =>
  plugin('CertificateSigning', 'status', (request) => {
    if (!isSigned(request)) return;
    checkCertificate(request);
    return check(authorizer, request, 'sign');
  });

const plugin = (name: string, subresource: string, validate: AdmissionPlugin['validate']): AdmissionPlugin => ({
  name,
  handles: ({ kind, subresource: sub, operation }) =>
    operation === 'UPDATE' && sub === subresource && isKindOf(kind, CERTIFICATE_SIGNING_REQUESTS),
  validate,
});

function isSigned({ object, old }: AdmissionRequest): boolean {
  const contents = (request: unknown): JsonValue => {
    const { certificate, conditions } = (request as CertificateSigningRequest).status ?? {};
    return [certificate ?? '', conditions ?? []] as JsonValue;
  };
  return !jsonEqual(contents(object), contents(old));
}

function checkCertificate({ kind, name, object }: AdmissionRequest): void {
  const { certificate = '' } = (object as CertificateSigningRequest).status ?? {};
  const error = certificate === '' ? undefined : certificateError(certificate);
  if (error === undefined) return;
  throw invalidObject(kind, name, [invalid('status.certificate', '<certificate data>', error)]);
}

/** Rejects with 403 Forbidden if the user has the right neither for the signer nor for all signers of its domain (`example.com/*`). */
async function check(
  authorizer: Authorizer,
  { context, groupResource, name, old }: AdmissionRequest,
  verb: 'approve' | 'sign',
): Promise<void> {
  const { signerName } = (old as CertificateSigningRequest).spec;
  const { group } = groupResource;
  for (const signer of [signerName, `${signerName.split('/')[0]}/*`]) {
    const right = { user: context.user, verb, group, resource: 'signers', name: signer };
    if ((await authorizer.authorize(right)).allowed) return;
  }
  throw forbidden(
    groupResource,
    name,
    `user not permitted to ${verb} requests with signerName ${JSON.stringify(signerName)}`,
  );
}

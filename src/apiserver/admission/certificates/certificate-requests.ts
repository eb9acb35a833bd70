/**
 * Sets the requesting user in new CertificateSigningRequests, verifies `spec.request`, and refuses requests for client certificates with
 * the group system:masters.
 * Source: pkg/registry/certificates and the plugin CertificateSubjectRestriction of v1.33 (behavior and wording). Upstream parses
 * `spec.request` in the validation of the kind.
 */
import type { CertificateSigningRequest } from '../../../api/generated/types.ts';
import { CERTIFICATE_SIGNING_REQUESTS } from '../../../api/resources.ts';
import { invalid } from '../../../machinery/field-error.ts';
import { forbidden, invalidObject, isApiError } from '../../../machinery/status.ts';
import type { UserInfo } from '../../../ports/request.ts';
import { readRequest } from '../../pki/authority.ts';
import type { AdmissionRequest, PluginFactory } from '../plugin.ts';
import { on } from '../targets.ts';

const API_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client';
const PRIVILEGED_GROUP = 'system:masters';

export const certificateRequests: PluginFactory = () => ({
  name: 'CertificateSubjectRestriction',
  handles: on(CERTIFICATE_SIGNING_REQUESTS, 'CREATE'),
  admit({ object, context }) {
    setUser(object as CertificateSigningRequest, context.user);
  },
  validate: check,
});

function setUser({ spec }: CertificateSigningRequest, { name, uid, groups, extra }: UserInfo): void {
  spec.username = name;
  spec.groups = [...groups];
  if (uid === undefined) delete spec.uid;
  else spec.uid = uid;
  if (extra === undefined) delete spec.extra;
  else spec.extra = Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]]));
}

async function check({ kind, groupResource, object }: AdmissionRequest): Promise<void> {
  const { metadata, spec } = object as CertificateSigningRequest;
  const contents = await readRequest(spec.request).catch((error: Error) => {
    if (isApiError(error)) throw error;
    throw invalidObject(kind, metadata.name, [invalid('spec.request', spec.request, error.message)]);
  });
  if (spec.signerName !== API_CLIENT_SIGNER || !contents.organizations.includes(PRIVILEGED_GROUP)) return;
  const cause = `use of ${spec.signerName} signer with ${PRIVILEGED_GROUP} group is not allowed`;
  throw forbidden(groupResource, metadata.name, cause);
}

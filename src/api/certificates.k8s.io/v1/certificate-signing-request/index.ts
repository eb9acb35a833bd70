/**
 * The CertificateSigningRequest: asks a signer for a certificate.
 *
 * Boundary: the API server parses the request, and sets the user that sent it (apiserver/admission/certificates); a controller approves the
 * requests of nodes, and lets the certificate authority sign approved requests (controllers/certificates).
 * Source: pkg/registry/certificates, pkg/apis/certificates and pkg/printers of v1.33.
 */
import { validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import { formatTime, type Millis } from '../../../../machinery/time.ts';
import { kind } from '../../../declaration.ts';
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from '../../../generated/types.ts';
import type { SubresourceDefinition } from '../../../kind.ts';
import { onCreate } from '../../../rules.ts';
import { ageColumn, column, humanDuration, nameColumn } from '../../../table.ts';
import { conditionText } from './conditions.ts';
import { validateApproval, validateSpec, validateStatus } from './validation.ts';

/** An absent lastTransitionTime is copied from the old condition with the same type and status. */
function setTimes(request: CertificateSigningRequest, old: CertificateSigningRequest, millis: Millis): void {
  const { conditions } = request.status ?? {};
  if (conditions === undefined) return;
  const now = formatTime(millis);
  const keyOf = ({ type, status }: CertificateSigningRequestCondition): string => JSON.stringify([type, status]);
  const before = new Map(old.status?.conditions?.map((each) => [keyOf(each), each.lastTransitionTime]));
  request.status = {
    ...request.status,
    conditions: conditions.map((condition) => ({
      ...condition,
      lastUpdateTime: condition.lastUpdateTime ?? now,
      lastTransitionTime: condition.lastTransitionTime ?? before.get(keyOf(condition)) ?? now,
    })),
  };
}

/** The subresource changes only the metadata and the conditions. */
const approval: SubresourceDefinition<CertificateSigningRequest> = {
  verbs: ['get', 'update', 'patch'],
  apply(old, body, { now }) {
    const { metadata, status } = body as CertificateSigningRequest;
    const request = { ...old, metadata, status: { ...old.status, conditions: status?.conditions } };
    if (request.status.conditions === undefined) delete request.status.conditions;
    setTimes(request, old, now);
    return request;
  },
  validate: (request, old) => [
    ...validateObjectMetaUpdate(request.metadata, old.metadata),
    ...validateApproval(request, old),
  ],
};

export const certificateSigningRequestKind = kind<CertificateSigningRequest>(
  'certificates.k8s.io/v1',
  'CertificateSigningRequest',
  {
    scope: 'Cluster',
    shortNames: ['csr'],
    // Like upstream, do not restrict the names.
    names: () => [],
    defaults(request) {
      request.spec ??= { request: '', signerName: '' };
    },
    rules: [onCreate(validateSpec)],
    status: {
      initial: () => ({}),
      rules: [validateStatus],
      prepare: (request, old, { now }) => setTimes(request, old, now),
    },
    prepareForUpdate(request, old) {
      request.spec = old.spec;
    },
    subresources: { approval },
    selectableFields: ({ spec }) => ({ 'spec.signerName': spec?.signerName ?? '' }),
    columns: [
      nameColumn,
      ageColumn,
      column('SignerName', 'The signer that is asked for the certificate.', ({ spec }) => spec.signerName || '<none>'),
      column('Requestor', 'The user who created the request.', ({ spec }) => spec.username ?? ''),
      column('RequestedDuration', 'The requested lifetime of the certificate.', ({ spec }) =>
        spec.expirationSeconds === undefined ? '<none>' : humanDuration(spec.expirationSeconds * 1000),
      ),
      column('Condition', 'Whether the request is approved or denied, and the certificate issued.', conditionText),
    ],
  },
);

/** Source: admitCSR of plugin/pkg/admission/noderestriction of v1.33 (behavior and wording). */
import type { CertificateSigningRequest } from '../../../api/generated/types.ts';
import { isApiError } from '../../../machinery/status.ts';
import { readRequest } from '../../pki/authority.ts';
import { type Restriction, refusal } from './restriction.ts';

const SIGNERS_OF_NODES = ['kubernetes.io/kubelet-serving', 'kubernetes.io/kube-apiserver-client-kubelet'];

export const restrictCertificateRequest: Restriction = async (nodeName, request) => {
  if (request.operation !== 'CREATE') return;
  const { spec } = request.object as CertificateSigningRequest;
  if (!SIGNERS_OF_NODES.includes(spec.signerName)) return;
  const { commonName } = await readRequest(spec.request).catch((error: Error) => {
    if (isApiError(error)) throw error;
    throw refusal(request, `unable to parse csr: ${error.message}`);
  });
  const own = `system:node:${nodeName}`;
  if (commonName !== own) throw refusal(request, `can only create a node CSR with CN=${own}`);
};

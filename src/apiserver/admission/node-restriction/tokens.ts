/**
 * A node may request only ServiceAccount tokens that are bound to one of its Pods. Upstream also allows the audiences of CSI drivers, which
 * lifepod does not have.
 * Source: admitServiceAccount of plugin/pkg/admission/noderestriction of v1.33 (behavior and wording).
 */
import type { AuthenticationV1TokenRequest, Pod } from '../../../api/generated/types.ts';
import type { AdmissionRequest, AdmissionServices } from '../plugin.ts';
import { existingPod, quoted, type Restriction, refusal } from './restriction.ts';

export const restrictToken: Restriction = (nodeName, request, services) => {
  if (request.operation !== 'CREATE' || request.subresource !== 'token') return;
  const { boundObjectRef: bound, audiences = [] } = (request.object as AuthenticationV1TokenRequest).spec ?? {};
  const refuse = (cause: string) => refusal(request, cause);
  if (bound === undefined || bound.apiVersion !== 'v1' || bound.kind !== 'Pod' || !bound.name)
    throw refuse('node requested token not bound to a pod');
  if (!bound.uid) throw refuse('node requested token with a pod binding without a uid');
  const pod = existingPod(services, request.namespace, bound.name);
  if (bound.uid !== pod.metadata.uid)
    throw refuse(
      `the UID in the bound object reference (${bound.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  if (pod.spec?.nodeName !== nodeName)
    throw refuse('node requested token bound to a pod scheduled on a different node');
  if (audiences.length > 1) throw refuse('node may only request 0 or 1 audiences');
  return restrictAudience(audiences[0] ?? '', pod, request, services);
};

/**
 * A role can allow an audience that no volume of the Pod has, with the verb request-serviceaccounts-token-audience on a resource with the
 * name of the audience.
 */
async function restrictAudience(
  audience: string,
  pod: Pod,
  request: AdmissionRequest,
  { authorizer }: Pick<AdmissionServices, 'authorizer'>,
): Promise<void> {
  if (audiencesOf(pod).includes(audience)) return;
  const { user } = request.context;
  const { namespace, name } = request;
  const verb = 'request-serviceaccounts-token-audience';
  const { allowed } = await authorizer.authorize({ user, verb, group: '', resource: audience, namespace, name });
  if (allowed) return;
  const text = `audience ${quoted(audience)} not found in pod spec volume, ${user.name} is not authorized to request tokens for this audience`;
  throw refusal(request, text);
}

/** The empty text means the audience of the API server. */
const audiencesOf = ({ spec }: Pod): string[] =>
  (spec?.volumes ?? [])
    .flatMap(({ projected }) => projected?.sources ?? [])
    .flatMap(({ serviceAccountToken }) => (serviceAccountToken ? [serviceAccountToken.audience ?? ''] : []));

/**
 * Approves the requests of nodes for client certificates, lets the authority sign approved requests, and deletes old requests.
 *
 * Reads: certificatesigningrequests; clusterroles and clusterrolebindings, because a new right may allow the approval of a pending request.
 * Writes: certificatesigningrequests (approval, status, delete).
 * Source: the controllers csrapproving, csrsigning and csrcleaner of v1.33 (behavior and wording). Differences: upstream retries a request
 * that it could not approve, and looks for old requests once an hour.
 */
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from '../../api/generated/types.ts';
import { CERTIFICATE_SIGNING_REQUESTS, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES } from '../../api/resources.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Authorizer } from '../../ports/authorizer.ts';
import type { CertificateAuthority, Usage } from '../../ports/certificates.ts';
import type { UserInfo } from '../../ports/request.ts';
import type { ControllerOptions } from '../controller.ts';
import { createWakes } from '../wakes.ts';
import { decide, stepOf } from './decide.ts';
import { automaticApprovals } from './node-requests.ts';
import { SIGNERS } from './signers.ts';

/** The queue key that stands for all requests that wait for an approval. No request has this name. */
const ALL = '';

export interface CertificateOptions {
  authority: CertificateAuthority;
  authorizer: Pick<Authorizer, 'authorize'>;
}

export async function startCertificates(options: ControllerOptions & CertificateOptions): Promise<void> {
  const { client, informers, timers, log, signal, authority, authorizer } = options;
  const requestClient = client.resource<CertificateSigningRequest>(CERTIFICATE_SIGNING_REQUESTS);
  const queue = createWorkQueue({ name: 'certificates', process: reconcile, log, timers, signal });
  const wakes = createWakes(timers, signal, queue.add);
  const add = ({ metadata }: CertificateSigningRequest): void => queue.add(metadata.name);
  const requests = informers.follow<CertificateSigningRequest>(
    CERTIFICATE_SIGNING_REQUESTS,
    { signal },
    { added: add, updated: add, deleted: ({ metadata }) => wakes.cancel(metadata.name) },
  );
  const reviewAgain = (): void => queue.add(ALL);
  for (const resource of [CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS])
    informers.follow(resource, { signal }, { added: reviewAgain, updated: reviewAgain });
  await requests.synced;

  async function reconcile(name: string): Promise<void> {
    if (name === ALL) {
      for (const waiting of requests.list()) if (stepOf(waiting) === 'review') add(waiting);
      return;
    }
    const request = requests.get(undefined, name);
    if (request === undefined || request.metadata.deletionTimestamp !== undefined) return;
    const { step, deleteAt } = decide(request, timers.now());
    try {
      if (step === 'delete') await remove(request);
      else wakes.set(name, deleteAt);
      if (step === 'review') await review(request);
      if (step === 'sign') await sign(request);
    } catch (error) {
      // Another client has changed or deleted the request. The informer will report this.
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
  }

  async function remove({ metadata: { name, uid, resourceVersion } }: CertificateSigningRequest): Promise<void> {
    await requestClient.delete(name, undefined, { preconditions: { uid, resourceVersion } });
  }

  async function review(request: CertificateSigningRequest): Promise<void> {
    const contents = await authority.read(request.spec.request);
    for (const { subresource, message } of automaticApprovals(request, contents)) {
      const { group, resource } = CERTIFICATE_SIGNING_REQUESTS;
      const right = { user: senderOf(request), verb: 'create', group, resource, subresource };
      if (!(await authorizer.authorize(right)).allowed) continue;
      const condition = { type: 'Approved', status: 'True', reason: 'AutoApproved', message };
      await client.api.update(CERTIFICATE_SIGNING_REQUESTS, withCondition(request, condition), {
        subresource: 'approval',
      });
      return;
    }
  }

  async function sign(request: CertificateSigningRequest): Promise<void> {
    const { spec, status } = request;
    const { request: encoded, signerName, usages = [], expirationSeconds } = spec;
    const refusal = SIGNERS.get(signerName)?.(await authority.read(encoded), usages);
    if (refusal !== undefined) {
      const condition = { type: 'Failed', status: 'True', reason: 'SignerValidationFailure', message: refusal };
      await requestClient.updateStatus(withCondition(request, condition));
      return;
    }
    // Any other usage was refused above.
    const certificate = await authority.sign(encoded, { usages: usages as Usage[], expirationSeconds });
    await requestClient.updateStatus({ ...request, status: { ...status, certificate } });
  }
}

const senderOf = ({ spec }: CertificateSigningRequest): UserInfo => ({
  name: spec.username ?? '',
  groups: spec.groups ?? [],
  ...(spec.uid === undefined ? {} : { uid: spec.uid }),
  ...(spec.extra === undefined ? {} : { extra: spec.extra }),
});

const withCondition = (
  request: CertificateSigningRequest,
  condition: CertificateSigningRequestCondition,
): CertificateSigningRequest => ({
  ...request,
  status: { ...request.status, conditions: [...(request.status?.conditions ?? []), condition] },
});

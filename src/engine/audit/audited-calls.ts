/**
 * Records the calls of components of this process in the audit log. An audit policy can thus name the users of components, as in upstream,
 * where components are clients of the API server.
 *
 * A component has no connection, so its events have no source addresses.
 */
import type { Audit } from '../../apiserver/audit/audit.ts';
import type { RequestAudit } from '../../apiserver/audit/request-audit.ts';
import { jsonRepresentation } from '../../apiserver/representation/json.ts';
import { queryText, resourcePath } from '../../client/paths.ts';
import type { KubeList, KubeObject, Status } from '../../machinery/meta.ts';
import { ApiError } from '../../machinery/status.ts';
import type { ResourceBackend } from '../../ports/backend.ts';
import type { RequestContext } from '../../ports/request.ts';

/** Returns a backend that records the calls of components. The API server records the requests of clients itself. */
export function auditedCalls<Backend extends ResourceBackend>(
  backend: Backend,
  audit: Audit,
  userAgent: string,
): Backend {
  const begin = (request: RequestContext): RequestAudit | undefined =>
    request.source === 'client' ? undefined : audit.beginCall(request, { requestURI: uriOf(request), userAgent });
  return {
    ...backend,
    get: (request) => recorded(begin(request), request, () => backend.get(request)),
    list: (request, options) => recorded(begin(request), request, () => backend.list(request, options)),
    watch: (request, options, sink) =>
      recordedWatch(begin(request), request, () => backend.watch(request, options, sink)),
    create: (request, object, options) =>
      recorded(
        begin(request),
        request,
        () => backend.create(request, object, options),
        (audited) => audited.sent(object),
      ),
    update: (request, object, options) =>
      recorded(
        begin(request),
        request,
        () => backend.update(request, object, options),
        (audited) => audited.sent(object),
      ),
    patch: (request, type, body, options) =>
      recorded(
        begin(request),
        request,
        () => backend.patch(request, type, body, options),
        (audited) => audited.sentOther(body),
      ),
    delete: (request, options) => recorded(begin(request), request, () => backend.delete(request, options)),
    deleteCollection: (request, options) =>
      recorded(begin(request), request, () => backend.deleteCollection(request, options)),
  };
}

const uriOf = ({ verb, resource, namespace, name, subresource }: RequestContext): string =>
  `${resourcePath(resource, namespace, name, subresource)}${queryText({ watch: verb === 'watch' ? true : undefined })}`;

type Answer = KubeObject | Status | KubeList;

async function recorded<Result extends Answer>(
  audited: RequestAudit | undefined,
  { verb, signal }: RequestContext,
  call: () => Promise<Result>,
  sent?: (audited: RequestAudit) => void,
): Promise<Result> {
  if (audited === undefined) return call();
  await audited.received();
  sent?.(audited);
  try {
    const answer = await call();
    await audited.answered(answer, () => jsonRepresentation);
    audited.started(verb === 'create' ? 201 : 200);
    return answer;
  } catch (error) {
    recordFailure(audited, error, signal);
    throw error;
  } finally {
    await audited.complete();
  }
}

/** Records the start of the watch with the code 200 unless the watch fails within a turn of the event loop. */
async function recordedWatch(
  audited: RequestAudit | undefined,
  { signal }: RequestContext,
  watch: () => Promise<void>,
): Promise<void> {
  if (audited === undefined) return watch();
  await audited.received();
  setImmediate(() => audited.started(200));
  try {
    await watch();
  } catch (error) {
    recordFailure(audited, error, signal);
    throw error;
  } finally {
    await audited.complete();
  }
}

function recordFailure(audited: RequestAudit, error: unknown, signal: AbortSignal): void {
  if (error instanceof ApiError) {
    audited.failed(error.status);
    audited.started(error.code);
  } else if (!signal.aborted) {
    audited.panicked(error);
    audited.started(500);
  }
}

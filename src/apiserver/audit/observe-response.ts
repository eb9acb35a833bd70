/** Source: auditResponseWriter of k8s.io/apiserver/pkg/endpoints/filters of v1.33. */
import type { ServerResponse } from 'node:http';
import type { RequestAudit } from './request-audit.ts';

/**
 * Makes the response report its status and its end to the recorder. In the blocking modes, the response ends once its event is written or
 * lost.
 */
export function observeResponse(response: ServerResponse, audit: RequestAudit): void {
  const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
  const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse;
  response.writeHead = (code: number, ...rest: unknown[]) => {
    audit.started(code);
    return writeHead(code, ...rest);
  };
  response.end = (...args: unknown[]) => {
    // If writeHead() was not called, end() sends the status.
    audit.started(response.statusCode);
    const written = audit.complete();
    if (written === undefined) return end(...args);
    void written.then(() => end(...args));
    return response;
  };
}

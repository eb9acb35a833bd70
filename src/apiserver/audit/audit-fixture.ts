import { createMetrics, type Metrics } from '../../platform/metrics.ts';
import { systemTimers } from '../../platform/node-js.ts';
import type { ApiServerOptions } from '../server.ts';
import { startTestServer, type TestServer } from '../server-fixture.ts';
import { type Audit, createAudit } from './audit.ts';
import { jsonText } from './event.ts';
import { parsePolicy } from './policy.ts';
import type { Sink } from './sink.ts';

export interface AuditedServer extends TestServer {
  audit: Audit;
  metrics: Metrics;
  lines: string[];
  /** Returns the events since the last call. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read fields of JSON
  take(): any[];
}

/** `add`: called for each event after it is recorded; returns the result of Sink.add(). */
export async function startAuditedServer(
  rules: object[],
  { add, isStrict = false }: { add?: Sink['add']; isStrict?: boolean } = {},
  options: Partial<ApiServerOptions> = {},
): Promise<AuditedServer> {
  const lines: string[] = [];
  const metrics = createMetrics();
  const sink: Sink = {
    isStrict,
    add(event) {
      lines.push(jsonText(event));
      return add?.(event);
    },
    close: async () => undefined,
  };
  const policy = parsePolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules });
  const audit = createAudit({ policy, sink, metrics, timers: systemTimers() });
  const server = await startTestServer({ audit, ...options });
  return {
    ...server,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    audit,
    metrics,
    lines,
    take: () => lines.splice(0).map((line) => JSON.parse(line)),
  };
}

/**
 * Serves /healthz, /livez and /readyz, which run all their checks except those in `exclude` parameters, and paths such as /readyz/ping,
 * which run a single check.
 * Source of the texts: v1.33 health endpoints.
 */
import { pathNotFound } from '../../machinery/status.ts';
import { sendText } from './answers.ts';
import type { Exchange } from './exchange.ts';

/** Throws or rejects if the check fails. */
export type HealthCheck = () => void | Promise<void>;
export type HealthChecks = Readonly<Record<string, HealthCheck>>;

async function passes(check: HealthCheck): Promise<boolean> {
  try {
    await check();
    return true;
  } catch {
    return false;
  }
}

/** `segments`: ['readyz'] or ['readyz', NAME OF A CHECK], for example. Rejects with 404 NotFound for other paths. */
export async function serveHealth(
  exchange: Exchange,
  segments: readonly string[],
  checks: HealthChecks,
): Promise<void> {
  const [endpoint = '', only, ...rest] = segments;
  if (rest.length > 0) throw pathNotFound();
  if (only !== undefined) {
    const check = Object.hasOwn(checks, only) ? checks[only] : undefined;
    if (check === undefined) throw pathNotFound();
    const healthy = await passes(check);
    return sendText(exchange, healthy ? 200 : 500, healthy ? 'ok' : 'internal server error: check failed\n');
  }
  const excluded = new Set(exchange.query.getAll('exclude'));
  const lines: string[] = [];
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    if (excluded.has(name)) {
      excluded.delete(name);
      lines.push(`[+]${name} excluded: ok`);
    } else if (await passes(check)) {
      lines.push(`[+]${name} ok`);
    } else {
      failed += 1;
      // Clients can read this response without authentication.
      lines.push(`[-]${name} failed: reason withheld`);
    }
  }
  if (excluded.size > 0) {
    const names = [...excluded].sort().map((name) => JSON.stringify(name));
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names.join(',')}`);
  }
  if (failed > 0) return sendText(exchange, 500, `${lines.join('\n')}\n${endpoint} check failed\n`);
  if (!exchange.query.has('verbose')) return sendText(exchange, 200, 'ok');
  return sendText(exchange, 200, `${lines.join('\n')}\n${endpoint} check passed\n`);
}

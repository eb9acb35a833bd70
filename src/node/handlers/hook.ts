/**
 * Boundary: src/lifecycle decides when a hook runs, what its failure means and how long it may take. A hook has no timeout: the signal ends
 * it.
 * Source: pkg/kubelet/lifecycle of v1.33. The message of a failure may contain the hook's output, so it may appear in the container's
 * status and in the record of the Pod, but not in Events.
 */
import type { LifecycleHandler } from '../../api/generated/types.ts';
import { pause } from '../../platform/pause.ts';
import { OutcomeUnknownError } from '../../runtime/runtime.ts';
import { combined, MAX_OUTPUT } from './exec.ts';
import { joinHostPort } from './failure.ts';
import { type HttpRequest, httpGet, PlainHttpFailure } from './http.ts';
import type { HandlerPorts } from './probe.ts';
import { type HandlerTarget, httpRequest } from './target.ts';

/** The message has upstream's wording. */
export class HookError extends Error {
  override readonly name = 'HookError';
}

export interface HookOutcome {
  /**
   * The message of the Event LifecycleHTTPFallback, if the server at an https address spoke plain HTTP and the request was retried over
   * HTTP.
   */
  httpFallback?: string;
}

/**
 * Rejects with a HookError if the hook fails, with the signal's reason on abort, and with an OutcomeUnknownError if the runtime does not
 * answer.
 */
export async function runHook(
  target: HandlerTarget,
  handler: LifecycleHandler,
  ports: HandlerPorts,
  signal: AbortSignal,
): Promise<HookOutcome> {
  const { exec, httpGet, sleep } = handler;
  const { pod, container } = target;
  const { name, namespace, uid } = pod.metadata;
  const whose = `for Container ${JSON.stringify(container.name)} in Pod "${name}_${namespace}(${uid})" failed - error: `;
  const run = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof OutcomeUnknownError) throw error;
      throw new HookError(`${what} ${whose}${error instanceof Error ? error.message : String(error)}`);
    }
  };
  if (exec !== undefined) {
    const { command = [] } = exec;
    await run(`Exec lifecycle hook ([${command.join(' ')}])`, () =>
      runCommand(ports, target.containerId, command, signal),
    );
  } else if (httpGet !== undefined) {
    return run(`HTTP lifecycle hook (${httpGet.path ?? ''})`, () =>
      get(httpRequest(target, httpGet, 'lifecycle'), signal),
    );
  } else if (sleep !== undefined) {
    await pause(ports.timers, sleep.seconds * 1000, signal);
    signal.throwIfAborted();
  } else {
    // A tcpSocket hook also fails here: the API accepts tcpSocket hooks, but they always fail (API reference of v1.33).
    throw new HookError(`Cannot run handler: invalid handler: ${JSON.stringify(handler)}`);
  }
  return {};
}

async function runCommand(
  { runtime }: HandlerPorts,
  containerId: string,
  command: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const described = (reason: string, output: string): Error =>
    new Error(`${reason}, message: ${JSON.stringify(output)}`);
  const result = await runtime.execSync(containerId, command, 0, signal).catch((error: unknown) => {
    if (error instanceof OutcomeUnknownError) throw error;
    throw described(error instanceof Error ? error.message : String(error), '');
  });
  const { exitCode, stderr } = result;
  if (exitCode === 0) return;
  // Upstream reports the whole output. lifepod truncates the output, so that the status that contains it can be written.
  const reason = `command '${command.join(' ')}' exited with ${exitCode}: ${stderr.slice(0, MAX_OUTPUT)}`;
  throw described(reason, combined(result).slice(0, MAX_OUTPUT));
}

/**
 * If the server does not speak TLS, retries over plain HTTP, without the Authorization header, which would not be encrypted. Any response
 * counts as success, whatever its status.
 */
async function get(request: HttpRequest, signal: AbortSignal): Promise<HookOutcome> {
  try {
    await httpGet(request, signal);
    return {};
  } catch (error) {
    if (!(error instanceof PlainHttpFailure)) throw error;
    const headers = request.headers.filter(({ name }) => name.toLowerCase() !== 'authorization');
    // If HTTP fails too, report why HTTPS failed.
    await httpGet({ ...request, scheme: 'http', headers }, signal).catch(() => {
      throw error;
    });
    const host = joinHostPort(request.host, request.port);
    return { httpFallback: `request to HTTPS lifecycle hook ${host} got HTTP response, retry with HTTP succeeded` };
  }
}

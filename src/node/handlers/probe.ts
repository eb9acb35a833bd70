/**
 * Boundary: src/lifecycle decides when a probe is due, how often it must fail, and what a failure causes.
 * Invariants:
 * - runProbe() rejects only on abort or, with an OutcomeUnknownError, if the runtime does not answer.
 * - If the container responds wrongly or late, the result is Failure; after an error of the node or the runtime, it is Unknown.
 * Source: pkg/kubelet/prober of v1.33.
 */
import type { Probe } from '../../api/generated/types.ts';
import type { Timers } from '../../platform/platform.ts';
import { programPart } from '../../platform/programs/program-part.ts';
import { OutcomeUnknownError } from '../../runtime/runtime.ts';
import { withDeadline } from './deadline.ts';
import { type ExecPort, execProbe, expandCommand } from './exec.ts';
import { HandlerFailure } from './failure.ts';
import { httpGet as getByHttp } from './http.ts';
import { type HandlerTarget, httpRequest, KUBERNETES_MINOR, resolveHost, resolvePort } from './target.ts';
import { tcpConnect } from './tcp.ts';

export interface ProbeOutcome {
  result: 'Success' | 'Warning' | 'Failure' | 'Unknown';
  /** The failure, the warning or, for Unknown, the error; empty for Success. */
  message: string;
}

export interface HandlerPorts {
  runtime: ExecPort;
  timers: Timers;
}

/** Errors of the node or the runtime cause further attempts. Source: maxProbeRetries of v1.33. */
const ATTEMPTS = 3;

export async function runProbe(
  target: HandlerTarget,
  probe: Probe,
  ports: HandlerPorts,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  for (let attempt = 1; ; attempt++) {
    try {
      return { result: 'Success', message: '', ...(await attemptProbe(target, probe, ports, signal)) };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof OutcomeUnknownError) throw error;
      const message = error instanceof Error ? error.message : String(error);
      if (error instanceof HandlerFailure) return { result: 'Failure', message };
      if (attempt === ATTEMPTS) return { result: 'Unknown', message };
    }
  }
}

/** Resolves to undefined on success, or to an outcome with a warning. Rejects if the probe fails. */
async function attemptProbe(
  target: HandlerTarget,
  probe: Probe,
  { runtime, timers }: HandlerPorts,
  signal: AbortSignal,
): Promise<ProbeOutcome | undefined> {
  const { exec, httpGet, tcpSocket, grpc, timeoutSeconds = 1 } = probe;
  const { pod, container, containerId } = target;
  const millis = timeoutSeconds * 1000;
  if (exec !== undefined) {
    const command = expandCommand(exec.command ?? [], container.env ?? []);
    await execProbe(runtime, containerId, command, millis, signal);
  } else if (httpGet !== undefined) {
    const request = httpRequest(target, httpGet, 'probe');
    return judge(await withDeadline(timers, millis, signal, (inTime) => getByHttp(request, inTime)));
  } else if (tcpSocket !== undefined) {
    const [host, port] = [resolveHost(tcpSocket.host, target), resolvePort(tcpSocket.port, container)];
    await withDeadline(timers, millis, signal, (inTime) => tcpConnect(host, port, inTime));
  } else if (grpc !== undefined) {
    const { port, service = '' } = grpc;
    const userAgent = `kube-probe/${KUBERNETES_MINOR}`;
    const check = { host: resolveHost(undefined, target), port, service, userAgent, timeoutSeconds };
    const { checkHealth } = await programPart(() => import('./grpc.ts'));
    await withDeadline(timers, millis, signal, (inTime) => checkHealth(check, inTime));
  } else {
    const { name, namespace, uid } = pod.metadata;
    throw new Error(`missing probe handler for ${name}_${namespace}(${uid}):${container.name}`);
  }
  return undefined;
}

function judge({ status, body }: { status: number; body: string }): ProbeOutcome | undefined {
  // The message of a failure omits the body, which may contain data that not every reader of Events may see. The warning below contains the
  // body, as upstream's does.
  if (status < 200 || status >= 400) throw new HandlerFailure(`HTTP probe failed with statuscode: ${status}`);
  if (status < 300) return undefined;
  return { result: 'Warning', message: `Probe terminated redirects, Response body: ${body}` };
}

import { internalError } from '../../machinery/status.ts';
import type { NodeConnection, StreamEndpoint } from '../../ports/node-connection.ts';
import type { ContainerStreams } from '../../runtime/runtime.ts';
import type { RunLookup } from '../pod/run-lookup.ts';
import type { StartGate } from './exec-gate.ts';

/** The v1.33 kubelet's text, with the prefix that the API server adds for a failed upgrade. */
const refused = (cause: string) => internalError(`unable to upgrade connection: ${cause}`);

export function createStreamSource(
  runs: Pick<RunLookup, 'running' | 'sandbox'>,
  runtime: ContainerStreams,
  startGate: StartGate,
): Pick<NodeConnection, 'exec' | 'execTurn' | 'attach' | 'portForward'> {
  const runningId = (podUid: string, container: string): string => {
    const id = runs.running(podUid, container);
    if (id === undefined) throw refused(`container not found (${JSON.stringify(container)})`);
    return id;
  };
  const endpoint = async (url: Promise<string>, signal: AbortSignal): Promise<StreamEndpoint> => {
    try {
      return { url: await url };
    } catch (error) {
      if (signal.aborted) throw error;
      throw refused(error instanceof Error ? error.message : String(error));
    }
  };
  return {
    exec: async (pod, container, { command, ...streams }, signal) =>
      endpoint(runtime.exec(runningId(pod.uid, container), command, streams, signal), signal),
    execTurn: (signal) => startGate('client', signal),
    attach: async (pod, container, streams, signal) =>
      endpoint(runtime.attach(runningId(pod.uid, container), streams, signal), signal),
    portForward: async (pod, ports, signal) => {
      const id = runs.sandbox(pod.uid);
      if (id === undefined) throw refused(`pod not found (${JSON.stringify(`${pod.name}_${pod.namespace}`)})`);
      return endpoint(runtime.portForward(id, ports, signal), signal);
    },
  };
}

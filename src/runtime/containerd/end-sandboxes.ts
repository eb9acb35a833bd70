/** Ends sandboxes through CRI. This module is separate from run-state.ts because it loads gRPC, which few commands need. */
import type { Log } from '../../platform/platform.ts';
import { connect } from '../cri/connection.ts';

const END_SANDBOXES_MILLIS = 30_000;

/**
 * Stops and removes all sandboxes through CRI, which also removes their networks, cgroups and sockets. On the first error, or after 30 s in
 * total, logs the error and leaves the remaining sandboxes to clearRunState().
 */
export async function endSandboxes(endpoint: string, log: Log): Promise<void> {
  const connection = connect(endpoint);
  const signal = AbortSignal.timeout(END_SANDBOXES_MILLIS);
  const call = <T>(method: string, request: object): Promise<T> =>
    connection.unary<T>(`runtime.v1.RuntimeService/${method}`, request, signal);
  try {
    const { items } = await call<{ items: { id: string }[] }>('ListPodSandbox', {});
    for (const { id } of items) {
      await call('StopPodSandbox', { podSandboxId: id });
      await call('RemovePodSandbox', { podSandboxId: id });
    }
  } catch (error) {
    log.warn('could not stop and remove all sandboxes', { error: String(error) });
  } finally {
    connection.close();
  }
}

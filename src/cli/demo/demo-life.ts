/** Prints the life of one Pod like `kubectl get -w`, with the time since the first printed line before each line. */
import { podSummary } from '../../api/core/v1/pod/status/summary.ts';
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import { clientFromKubeconfig } from '../../client/kubeconfig.ts';
import { UserError } from '../../platform/files.ts';

const WAIT_MILLIS = 60_000;

export interface Moment {
  pod: Pod;
  /** The STATUS column of kubectl get, such as Init:0/2 or Running, but Terminating for every deleted Pod. */
  status: string;
  ready: string;
  gone: boolean;
}

export interface Life {
  /**
   * Resolves when `fits` returns true for the current or a later moment. Rejects when the watch of the Pod ends, and, with an error that
   * contains `what`, after a minute.
   */
  until(what: string, fits: (moment: Moment) => boolean): Promise<void>;
  close(): void;
}

export async function watchLife(
  kubeconfig: string,
  name: string,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Life> {
  const pods = (await clientFromKubeconfig(kubeconfig)).resource<Pod>(PODS);
  const closing = new AbortController();
  const ends = AbortSignal.any([signal, closing.signal]);
  const listeners = new Set<(moment: Moment) => void>();
  let latest: Moment | undefined;
  let begin: number | undefined;
  let printed = '';

  const show = (moment: Moment): void => {
    begin ??= performance.now();
    const shown = moment.gone ? 'gone' : `${moment.ready}  ${moment.status}`;
    if (shown !== printed) say(`${((performance.now() - begin) / 1000).toFixed(2).padStart(7)} s  ${name}  ${shown}`);
    printed = shown;
    latest = moment;
    for (const listener of listeners) listener(moment);
  };
  const { metadata } = await pods.list({ namespace: 'default' });
  const watching = pods.watch(
    { namespace: 'default', fieldSelector: `metadata.name=${name}`, resourceVersion: metadata.resourceVersion },
    (event) => {
      if (event.type === 'ERROR' || event.type === 'BOOKMARK') return;
      const { status, ready, total } = summaryOf(event.object);
      show({ pod: event.object, status, ready: `${ready}/${total}`, gone: event.type === 'DELETED' });
    },
    ends,
  );
  const lost = watching.then(() => {
    throw signal.aborted ? signal.reason : new UserError('the API server ended the watch of the Pod');
  });
  lost.catch(() => undefined);

  return {
    async until(what, fits) {
      if (latest !== undefined && fits(latest)) return;
      const reached = Promise.withResolvers<void>();
      const listener = (moment: Moment): void => {
        if (fits(moment)) reached.resolve();
      };
      const timer = setTimeout(
        () => reached.reject(new UserError(`the demo gave up after waiting a minute until ${what}`)),
        WAIT_MILLIS,
      );
      listeners.add(listener);
      try {
        await Promise.race([reached.promise, lost]);
      } finally {
        clearTimeout(timer);
        listeners.delete(listener);
      }
    },
    close: () => closing.abort(),
  };
}

function summaryOf(pod: Pod): { status: string; ready: number; total: number } {
  const summary = podSummary(pod);
  return pod.metadata.deletionTimestamp === undefined ? summary : { ...summary, status: 'Terminating' };
}

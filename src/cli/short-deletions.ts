/** Shortens the grace period of Pods that other components delete, for `lifepod down` with --now or --grace-period. */
import type { Pod } from '../api/generated/types.ts';
import { PODS } from '../api/resources.ts';
import type { Client } from '../client/client.ts';
import { createInformer } from '../client/informer.ts';
import { uidOf } from '../machinery/meta.ts';
import { isApiError } from '../machinery/status.ts';
import type { Platform } from '../platform/platform.ts';
import { deletePatiently } from './delete-patiently.ts';

interface Shortening {
  client: Client;
  platform: Platform;
  /** Undefined: no deletion is shortened. */
  gracePeriodSeconds: number | undefined;
}

/**
 * Until `act` settles, finds Pods that are being deleted with a longer grace period, for example by the garbage collector, and deletes them
 * again with `gracePeriodSeconds`. Settles as `act` does.
 */
export async function withShortDeletions(
  { client, platform, gracePeriodSeconds }: Shortening,
  signal: AbortSignal,
  act: () => Promise<void>,
): Promise<void> {
  if (gracePeriodSeconds === undefined) return act();
  const watching = new AbortController();
  const ends = AbortSignal.any([signal, watching.signal]);
  const pods = client.resource<Pod>(PODS);
  const shorten = (pod: Pod): void => {
    const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
    if (deletionTimestamp === undefined || deletionGracePeriodSeconds <= gracePeriodSeconds) return;
    const options = { gracePeriodSeconds, preconditions: { uid: uidOf(pod) } };
    const patience = { timers: platform.timers, signal: ends, failed: () => undefined };
    deletePatiently(pods, pod.metadata, options, patience).catch((error: unknown) => {
      // An error of the API means, for example, that another Pod has the name now.
      if (!isApiError(error)) platform.log.warn('a Pod keeps its grace period', { error: String(error) });
    });
  };
  createInformer(pods, { ...platform, signal: ends }, { added: shorten, updated: shorten });
  try {
    await act();
  } finally {
    watching.abort();
  }
}

/**
 * Reports the Pods that end while `lifepod down` deletes the objects of sessions, and shortens their grace periods with --now or
 * --grace-period: it does not delete these Pods itself, because controllers delete those that the objects own.
 */
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createInformer } from '../../client/informer.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Platform } from '../../platform/platform.ts';
import { deletePatiently } from '../delete-patiently.ts';
import { beginOf, type EndReports, followNodes, onlyFinalizersLeft, soonerText } from '../end-pods.ts';

interface Watching {
  client: Client;
  platform: Platform;
  say(line: string): void;
  reports: EndReports;
  /** Undefined: no deletion is shortened. */
  gracePeriodSeconds: number | undefined;
}

/**
 * Until `act` settles, finds Pods that are being deleted, for example by the garbage collector. Says once that each of them ends, and
 * deletes those that have a longer grace period than `gracePeriodSeconds` again. Settles as `act` does.
 */
export async function withWatchedDeletions(
  { client, platform, say, reports, gracePeriodSeconds }: Watching,
  signal: AbortSignal,
  act: () => Promise<void>,
): Promise<void> {
  const watching = new AbortController();
  const options = { ...platform, signal: AbortSignal.any([signal, watching.signal]) };
  const pods = client.resource<Pod>(PODS);
  const { since, begun, reportEntries, reportNode } = reports;
  let longest = 0;
  const see = (pod: Pod): void => {
    const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
    if (deletionTimestamp === undefined) return;
    reportEntries(pod);
    if (gracePeriodSeconds !== undefined && deletionGracePeriodSeconds > gracePeriodSeconds) shorten(pod);
    if (begun.has(uidOf(pod)) || onlyFinalizersLeft(pod)) return;
    begun.add(uidOf(pod));
    const { grace, line } = beginOf(pod, gracePeriodSeconds, platform.timers.now(), since);
    say(line);
    const isLonger = gracePeriodSeconds === undefined && grace > longest;
    longest = Math.max(longest, grace);
    const sooner = isLonger ? soonerText(longest) : '';
    if (sooner !== '') say(`waiting up to ${longest} s${sooner}`);
  };
  const shorten = (pod: Pod): void => {
    const deletion = { gracePeriodSeconds, preconditions: { uid: uidOf(pod) } };
    const patience = { timers: platform.timers, signal: options.signal, failed: () => undefined };
    deletePatiently(pods, pod.metadata, deletion, patience).catch((error: unknown) => {
      // An error of the API means, for example, that another Pod has the name now.
      if (!isApiError(error)) platform.log.warn('a Pod keeps its grace period', { error: String(error) });
    });
  };
  createInformer(pods, options, { added: see, updated: see, deleted: reportEntries });
  followNodes(client, options, reportNode);
  try {
    await act();
  } finally {
    watching.abort();
  }
}

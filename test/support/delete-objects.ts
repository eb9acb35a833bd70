/** Requests over one connection take a small part of the processor time that kubectl takes to start. */
import { parseArgs } from 'node:util';
import type { KubeObject } from '../../src/machinery/meta.ts';
import { isApiError } from '../../src/machinery/status.ts';
import type { Connect, Connection } from './connection.ts';
import { existing, type Named, objectsNamed, SELECTION, signalOf, untilObjects } from './object-arguments.ts';

const NOW_SECONDS = 1;
/** The policies of --cascade. Source: kubectl. */
const POLICIES: Record<string, string> = { background: 'Background', foreground: 'Foreground', orphan: 'Orphan' };

/**
 * Returns a function that takes the arguments of `kubectl delete` (`KIND NAME…` or `KIND/NAME…`, -n, -l, --all, --now, --grace-period,
 * --force, --cascade, --ignore-not-found, --wait=false). It resolves when the objects no longer exist, or with --wait=false when they have
 * been deleted. It rejects with the error of the API, if a kind is unknown, and if an object still exists after --timeout, by default two
 * minutes.
 */
export const deleter =
  (connect: Connect) =>
  async (...args: string[]): Promise<void> => {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        ...SELECTION,
        all: { type: 'boolean' },
        timeout: { type: 'string' },
        now: { type: 'boolean' },
        force: { type: 'boolean' },
        'grace-period': { type: 'string' },
        cascade: { type: 'string', default: 'background' },
        'ignore-not-found': { type: 'boolean' },
        wait: { type: 'string', default: 'true' },
      },
    });
    const options = {
      gracePeriodSeconds: gracePeriodOf({ ...values, gracePeriod: values['grace-period'] }),
      propagationPolicy: POLICIES[values.cascade],
    };
    // Like kubectl, ignores that an object of a list has been deleted meanwhile.
    const mayLack = values['ignore-not-found'] ?? (values.all === true || values.selector !== undefined);
    const connection = await connect();
    const deleted: { named: Named; uid: string }[] = [];
    for (const named of objectsNamed(positionals, connection.namespace, values)) {
      const names = named.name === undefined ? (await existing(connection.api, named)).map(nameOf) : [named.name];
      for (const name of names) {
        try {
          const uid = await deleteOne(connection, { ...named, name }, options);
          if (uid !== undefined) deleted.push({ named: { ...named, name }, uid });
        } catch (error) {
          if (!mayLack || !isApiError(error, 'NotFound')) throw error;
        }
      }
    }
    if (values.wait === 'false') return;
    const signal = signalOf(values.timeout);
    await Promise.all(
      deleted.map(({ named, uid }) => untilObjects(connection, named, (objects) => !objects.has(uid), signal)),
    );
  };

const nameOf = ({ metadata }: KubeObject): string => metadata.name;

/** Resolves with the object's UID; undefined if the response does not contain the UID. */
async function deleteOne(
  { api }: Connection,
  { ref, namespace, name = '' }: Named,
  options: { gracePeriodSeconds: number | undefined; propagationPolicy: string | undefined },
): Promise<string | undefined> {
  const result = await api.delete(ref, namespace, name, options);
  return result.kind === 'Status' && 'details' in result ? result.details?.uid : (result as KubeObject).metadata.uid;
}

/** Returns seconds; undefined if the object's own grace period applies. Source: kubectl. */
function gracePeriodOf(options: { now?: boolean; force?: boolean; gracePeriod?: string }): number | undefined {
  if (options.now === true) return NOW_SECONDS;
  if (options.force === true) return Number(options.gracePeriod ?? 0);
  return options.gracePeriod === undefined ? undefined : Math.max(Number(options.gracePeriod), NOW_SECONDS);
}

/** A watch takes a small part of the processor time that kubectl takes to start. */
import { parseArgs } from 'node:util';
import { type KubeObject, uidOf } from '../../src/machinery/meta.ts';
import type { Connect } from './connection.ts';
import { existing, objectsNamed, SELECTION, signalOf, untilObjects } from './object-arguments.ts';

interface Condition {
  type: string;
  status: string;
  observedGeneration?: number;
}

interface WithStatus extends KubeObject {
  status?: { conditions?: Condition[]; observedGeneration?: number };
}

/**
 * Returns a function that takes the arguments of `kubectl wait` (`KIND/NAME…`, `KIND NAME…`, -n, -l, --all, and --for with `delete`,
 * `create`, `condition=TYPE[=STATUS]` or `jsonpath={PATH}[=VALUE]`), and resolves when all named objects are in this state. It rejects like
 * kubectl if an object does not exist or is deleted while it waits for a condition or a value, and after --timeout, by default two minutes.
 */
export const waiter =
  (connect: Connect) =>
  async (...args: string[]): Promise<void> => {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        ...SELECTION,
        all: { type: 'boolean' },
        timeout: { type: 'string' },
        for: { type: 'string' },
      },
    });
    const goal = values.for ?? '';
    const connection = await connect();
    const signal = signalOf(values.timeout);
    const waits = objectsNamed(positionals, connection.namespace, values).map(async (named) => {
      if (goal === 'create') return untilObjects(connection, named, (objects) => objects.size > 0, signal);
      // Without a name, kubectl waits for the objects that exist when it begins.
      const uids = (await existing(connection.api, named)).map(uidOf);
      if (goal === 'delete') {
        return untilObjects(connection, named, (objects) => !uids.some((uid) => objects.has(uid)), signal);
      }
      if (uids.length === 0) throw new Error(`kubectl wait ${args.join(' ')}: there is no such object`);
      const holds = stateOf(goal);
      const allHold = (objects: ReadonlyMap<string, KubeObject>): boolean =>
        uids.every((uid) => {
          const object = objects.get(uid);
          if (object === undefined) throw new Error(`kubectl wait ${args.join(' ')}: the object was deleted`);
          return holds(object);
        });
      return untilObjects(connection, named, allHold, signal);
    });
    await Promise.all(waits);
  };

function stateOf(goal: string): (object: KubeObject) => boolean {
  const [, type, status = 'true'] = /^condition=([^=]+)(?:=(.+))?$/.exec(goal) ?? [];
  if (type !== undefined) return (object) => hasCondition(object, type, status);
  const [, path, value] = /^jsonpath=\{((?:\.\w+|\[\d+\])+)\}(?:=(.+))?$/.exec(goal) ?? [];
  if (path === undefined) throw new Error(`--for=${goal}: use kubectl wait for this state`);
  const keys = path.match(/\w+/g) ?? [];
  return (object) => {
    const found = keys.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object);
    return value === undefined ? found !== undefined && found !== null : String(found) === value;
  };
}

/** Like kubectl, ignores a condition that the component has set for an earlier generation of the object. */
function hasCondition(object: KubeObject, type: string, status: string): boolean {
  const { conditions = [], observedGeneration } = (object as WithStatus).status ?? {};
  const found = conditions.find((each) => each.type.toLowerCase() === type.toLowerCase());
  const generation = found?.observedGeneration ?? observedGeneration;
  const current = generation === undefined || generation >= (object.metadata.generation ?? 0);
  return current && found?.status.toLowerCase() === status.toLowerCase();
}

/** A request over one connection takes a small part of the processor time that kubectl takes to start. */
import { parseArgs } from 'node:util';
import type { KubeObject } from '../../src/machinery/meta.ts';
import type { Connect } from './connection.ts';
import { kindNamed, SELECTION } from './object-arguments.ts';

/**
 * Returns a function that takes the arguments of `kubectl get` (`KIND NAME`, `KIND/NAME` or `KIND`, -n, -l, --field-selector,
 * --show-managed-fields), and resolves with what `kubectl get -o json` prints: the object, or the list without a name. It rejects with the
 * error of the API, or if the kind is unknown.
 */
export const objectReader =
  (connect: Connect) =>
  async (...args: string[]): Promise<unknown> => {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        ...SELECTION,
        'field-selector': { type: 'string' },
        'show-managed-fields': { type: 'boolean' },
      },
    });
    const [word = '', name = positionals[1]] = (positionals[0] ?? '').split('/');
    const { ref, namespaced } = kindNamed(word);
    const { api, namespace: own } = await connect();
    const namespace = namespaced ? (values.namespace ?? own) : undefined;
    const shown = (object: KubeObject): KubeObject => {
      const { managedFields, ...metadata } = object.metadata;
      return values['show-managed-fields'] === true ? object : { ...object, metadata };
    };
    if (name !== undefined) return shown(await api.get(ref, namespace, name));
    const selectors = { labelSelector: values.selector, fieldSelector: values['field-selector'] };
    const list = await api.list(ref, { namespace, ...selectors });
    return { ...list, items: list.items.map(shown) };
  };

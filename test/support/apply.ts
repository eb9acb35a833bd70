/** An apply over one connection takes a small part of the processor time that kubectl takes to start. */
import { parseAllDocuments } from 'yaml';
import { kinds } from '../../src/api/kinds.ts';
import type { KubeList, KubeObject } from '../../src/machinery/meta.ts';
import type { Connect } from './connection.ts';

function objectsOf(manifest: object | string): KubeObject[] {
  const documents =
    typeof manifest === 'string' ? parseAllDocuments(manifest).map((document) => document.toJS()) : [manifest];
  return documents
    .filter((document) => document !== null)
    .flatMap((document) => (document.kind === 'List' ? (document as KubeList).items : [document as KubeObject]));
}

/**
 * Returns a function that applies a manifest on the server. Objects without a namespace belong to the namespace of the kubeconfig's
 * context. The function rejects with the error of the API, or if the kind is unknown.
 */
export const applier =
  (connect: Connect) =>
  async (manifest: object | string): Promise<void> => {
    const { api, namespace } = await connect();
    for (const object of objectsOf(manifest)) {
      const kind = kinds.find((kind) => `${kind.group}/${kind.version}/${kind.kind}` === nameOf(object));
      if (kind === undefined) throw new Error(`no built-in kind is ${object.apiVersion} ${object.kind}`);
      const ref = { group: kind.group, version: kind.version, resource: kind.plural };
      const where = kind.namespaced ? (object.metadata.namespace ?? namespace) : undefined;
      const options = { fieldManager: 'test', force: true, fieldValidation: 'Strict' } as const;
      await api.patch(ref, where, object.metadata.name, 'application/apply-patch+yaml', object, options);
    }
  };

const nameOf = ({ apiVersion = '', kind }: KubeObject): string =>
  `${apiVersion.includes('/') ? apiVersion : `/${apiVersion}`}/${kind}`;

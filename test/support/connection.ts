/** Connects a test to the API of its engine, for requests that need no kubectl. */
import { readFileSync } from 'node:fs';
import { clientFromKubeconfig, readKubeconfig } from '../../src/client/kubeconfig.ts';
import type { ResourceApi } from '../../src/ports/backend.ts';

export interface Connection {
  api: ResourceApi;
  namespace: string;
}

export type Connect = () => Promise<Connection>;

/** Reads the kubeconfig at each call, because a restarted engine may have another port. */
export function connector(kubeconfig: string): Connect {
  let last: { text: string; connection: Connection } | undefined;
  return async () => {
    const text = readFileSync(kubeconfig, 'utf8');
    if (last?.text !== text) {
      const { namespace = 'default' } = await readKubeconfig(kubeconfig);
      last = { text, connection: { api: (await clientFromKubeconfig(kubeconfig)).api, namespace } };
    }
    return last.connection;
  };
}

/** Measures the cost of RBAC: a member of system:masters, for whom RBAC is not evaluated, and a user with a Role send the same requests. */
import { startNewServer } from './bench-server.ts';
import type { Connection } from './connection.ts';
import { AT_ONCE, loadOf, type Measure, openMany, type Request, rateOf, type Section } from './measure.ts';
import { NAMESPACE, newConfigMap, newPod, PODS, TEMPLATE } from './objects.ts';

const GROUP = 'rbac.authorization.k8s.io';
const USER = 'jane';

function roleAndBinding(): Request[] {
  const path = `/apis/${GROUP}/v1/namespaces/${NAMESPACE}`;
  const common = { apiVersion: `${GROUP}/v1`, metadata: { name: 'worker' } };
  const rules = [{ apiGroups: [''], resources: ['pods', 'configmaps'], verbs: ['get', 'list', 'watch', 'create'] }];
  const roleRef = { apiGroup: GROUP, kind: 'Role', name: 'worker' };
  const subjects = [{ apiGroup: GROUP, kind: 'User', name: USER }];
  return [
    ['POST', `${path}/roles`, JSON.stringify({ ...common, kind: 'Role', rules })],
    ['POST', `${path}/rolebindings`, JSON.stringify({ ...common, kind: 'RoleBinding', roleRef, subjects })],
  ];
}

export const rights: Section = {
  rounds: 11,
  async open(checkout) {
    const server = await startNewServer(checkout);
    const administrators = await openMany(server.admin, AT_ONCE);
    for (const request of roleAndBinding()) await (administrators[0] as Connection).send(...request);
    const users = await openMany(await server.user(USER), AT_ONCE);
    let turn = 0;
    const compared = (what: string, count: number, request: () => Request): Measure => {
      const [first, second] = [
        loadOf(server, `${what} of system:masters`, administrators, count, request),
        loadOf(server, `${what} of a user with a Role`, users, count, request),
      ];
      return async () => {
        // If the order were fixed, the second load would always find a warmer server.
        const isSwapped = turn++ % 2 === 1;
        const early = isSwapped ? await second() : undefined;
        const privileged = await first();
        const authorized = early ?? (await second());
        const [, before] = privileged;
        const [, after] = authorized;
        const value = (after?.value ?? 0) / (before?.value ?? 0);
        return [...privileged, ...authorized, { what: 'CPU of the second to that of the first', value, unit: '×' }];
      };
    };
    const get = (): Request => ['GET', `${PODS}/${TEMPLATE}`];
    for (const connections of [administrators, users]) {
      await rateOf(connections, 2000, get);
      await rateOf(connections, 500, newPod);
      await rateOf(connections, 500, newConfigMap);
    }
    return {
      measures: [
        compared('gets of a Pod', 8000, get),
        compared('creates of Pods', 600, newPod),
        compared('creates of ConfigMaps', 1000, newConfigMap),
      ],
      async end() {
        for (const connection of [...administrators, ...users]) connection.close();
        await server.stop();
      },
    };
  },
};

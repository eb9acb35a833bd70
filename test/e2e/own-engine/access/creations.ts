import { expect, test } from 'vitest';
import type { ClusterRole, Role, RoleBinding } from '../../../../src/api/generated/types.ts';
import { lifepod } from '../../../support/own-engine.ts';
import { type KubectlProgram, RBAC } from './kubectl-program.ts';

/** The flags with which kubectl creates a role, and the rule of this role. */
const FORMS: readonly (readonly [string, object])[] = [
  ['--verb=get,list --verb=watch --resource=pods', { resources: ['pods'], verbs: ['get', 'list', 'watch'] }],
  ['--verb=get --resource=pods,pods/log', { resources: ['pods', 'pods/log'], verbs: ['get'] }],
  ['--verb=get --resource=deployments.apps', { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] }],
  ['--verb=get --resource=rs/scale', { apiGroups: ['apps'], resources: ['replicasets/scale'], verbs: ['get'] }],
  [
    '--verb=get --resource=secrets --resource-name=one --resource-name=two',
    { resources: ['secrets'], resourceNames: ['one', 'two'], verbs: ['get'] },
  ],
  ['--verb=* --resource=*', { resources: ['*'], verbs: ['*'] }],
];

export function testRoleCreation({ own, ok, refused }: KubectlProgram): void {
  test('create role and create clusterrole make rules of all forms', async () => {
    for (const [index, [form, rule]] of FORMS.entries()) {
      const [kind, where] = index % 2 === 0 ? ['role', ' -n a'] : ['clusterrole', ''];
      const printed = await ok(`create ${kind} ${own(`form-${index}`)}${where} ${form} -o json`);
      expect((JSON.parse(printed) as Role).rules).toEqual([{ apiGroups: [''], ...rule }]);
    }
    const urls = own('urls');
    expect(await ok(`create clusterrole ${urls} --verb=get --non-resource-url=/logs/*,/one`)).toBe(
      `clusterrole.${RBAC}/${urls} created\n`,
    );
    const { rules } = await lifepod.get<ClusterRole>('clusterrole', urls);
    expect(rules).toEqual([{ nonResourceURLs: ['/logs/*', '/one'], verbs: ['get'] }]);
    const sum = own('sum');
    await ok(`create clusterrole ${sum} --aggregation-rule=collected=yes`);
    await lifepod.until(['get', 'clusterrole', sum, '-w', '-o', 'json', '--output-watch-events=false'], (line) =>
      line.includes('"cronjobs"'),
    );
  });

  test('create role makes a dry run, and refuses what the server does not know or has already', async () => {
    const dry = own('dry');
    expect(await ok(`create role ${dry} -n a --verb=get --resource=pods --dry-run=server -o name`)).toBe(
      `role.${RBAC}/${dry}\n`,
    );
    expect(await refused(`get role ${dry} -n a`)).toContain('NotFound');
    expect(await refused(`create role ${dry} -n a --verb=get --resource=unknowns`)).toContain(
      'the server doesn\'t have a resource type "unknowns"',
    );
    expect(await refused(`create clusterrole ${dry} --verb=get`)).toContain(
      'one of resource or nonResourceURL must be specified',
    );
    const create = `create role ${dry} -n a --verb=get --resource=pods`;
    expect(await ok(create)).toBe(`role.${RBAC}/${dry} created\n`);
    expect(await refused(create)).toContain(`roles.${RBAC} "${dry}" already exists`);
  });
}

export function testBindingCreation({ own, ok, refused }: KubectlProgram): void {
  test('create rolebinding and create clusterrolebinding name subjects of all kinds', async () => {
    const who = '--user=u --user=v --group=g --serviceaccount=a:other';
    const subjects = [
      { apiGroup: RBAC, kind: 'User', name: 'u' },
      { apiGroup: RBAC, kind: 'User', name: 'v' },
      { apiGroup: RBAC, kind: 'Group', name: 'g' },
      { kind: 'ServiceAccount', name: 'other', namespace: 'a' },
    ];
    const [bound, viewing] = [own('bound'), own('viewing')];
    expect(await ok(`create rolebinding ${bound} -n a --role=reader ${who}`)).toBe(
      `rolebinding.${RBAC}/${bound} created\n`,
    );
    const roleRef = { apiGroup: RBAC, kind: 'Role', name: 'reader' };
    expect(await lifepod.get('rolebinding', bound, '-n', 'a')).toMatchObject({ roleRef, subjects });
    await ok(`create rolebinding ${viewing} -n a --clusterrole=view ${who}`);
    const view = { apiGroup: RBAC, kind: 'ClusterRole', name: 'view' };
    expect(await lifepod.get('rolebinding', viewing, '-n', 'a')).toMatchObject({ roleRef: view, subjects });
    expect(await ok(`create clusterrolebinding ${bound} --clusterrole=view ${who}`)).toBe(
      `clusterrolebinding.${RBAC}/${bound} created\n`,
    );
    expect(await lifepod.get('clusterrolebinding', bound)).toMatchObject({ roleRef: view, subjects });
    expect(await ok(`set subject rolebinding ${bound} -n a --user=w`)).toContain('subjects updated');
    expect((await lifepod.get<RoleBinding>('rolebinding', bound, '-n', 'a')).subjects).toHaveLength(5);
    expect(await refused(`create rolebinding ${own('wrong')} -n a ${who}`)).toContain('exactly one of');
  });

  test('a ServiceAccount of create serviceaccount has the rights of its bindings', async () => {
    const account = own('account');
    expect(await ok(`create serviceaccount ${account} -n a`)).toBe(`serviceaccount/${account} created\n`);
    await ok(`create rolebinding ${account} -n a --role=reader --serviceaccount=a:${account}`);
    expect(await ok(`auth can-i list pods -n a --as system:serviceaccount:a:${account}`)).toBe('yes\n');
  });
}

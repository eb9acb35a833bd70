import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lifepod } from '../../../support/own-engine.ts';
import type { KubectlProgram } from './kubectl-program.ts';

export function testImpersonation({ ok, refused }: KubectlProgram): void {
  test('--as and --as-group give the rights of the user and of the groups', async () => {
    expect(await ok('get pods -n a --as vera --as-group viewers -o name')).toBe('');
    expect(await refused('get pods -n a --as vera')).toContain(
      'pods is forbidden: User "vera" cannot list resource "pods" in API group "" in the namespace "a"',
    );
    expect(await refused('get pods -n a --as-group viewers')).toContain('without impersonating a user');
  });
}

/** kubectl 1.20 does not have these commands. */
export function testIdentities({ ok, refused, run }: KubectlProgram): void {
  test('auth whoami shows the user in every form', async () => {
    const jane = 'auth whoami --as jane --as-group team --as-uid 42';
    expect(await ok(jane)).toMatch(
      /^ATTRIBUTE +VALUE *\nUsername +jane *\nUID +42 *\nGroups +\[team system:authenticated\] *\n$/,
    );
    const userInfo = { username: 'jane', uid: '42', groups: ['team', 'system:authenticated'] };
    const json = JSON.parse(await ok(`${jane} -o json`));
    expect(json).toMatchObject({ kind: 'SelfSubjectReview', status: { userInfo } });
    expect(await ok(`${jane} -o yaml`)).toMatch(/^ {4}username: jane$/m);
    expect(await ok(`${jane} -o jsonpath={.status.userInfo.groups[0]}`)).toBe('team');
    expect(await ok(`${jane} -o go-template={{.status.userInfo.uid}}`)).toBe('42');
  });

  test('a user needs the right to impersonate each part of the other user', async () => {
    await ok('create serviceaccount pretender -n a');
    await ok('create clusterrole pretend --verb=impersonate --resource=users');
    await ok('create clusterrolebinding pretend --clusterrole=pretend --serviceaccount=a:pretender');
    const config = JSON.parse(readFileSync(lifepod.kubeconfig, 'utf8'));
    config.users[0].user = { token: (await ok('create token pretender -n a')).trim() };
    const path = join(lifepod.dataDir, 'pretender.kubeconfig');
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
    const jane = `--kubeconfig ${path} --as jane`;
    expect(await ok(`auth whoami ${jane} -o jsonpath={.status.userInfo.username}`)).toBe('jane');
    expect(await refused(`get pods ${jane} --as-uid 42`)).toContain(
      'cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope',
    );
    expect(await refused(`get pods ${jane} --as-group team`)).toContain(
      'cannot impersonate resource "groups" in API group "" at the cluster scope',
    );
  });

  test('create token takes a lifetime, audiences and an object to which the token is bound', async () => {
    await ok('create serviceaccount holder -n a');
    await ok('create secret generic held -n a');
    const create = 'create token holder -n a';
    const claimsOf = async (flags: string) => {
      const token = await ok(`${create}${flags}`);
      return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    };
    const plain = await claimsOf('');
    expect(plain.sub).toBe('system:serviceaccount:a:holder');
    expect(plain.exp - plain.iat).toBe(3600);
    const other = await claimsOf(' --duration=11m --audience=one --audience=two');
    expect(other.exp - other.iat).toBe(660);
    expect(other.aud).toEqual(['one', 'two']);
    const bound = await claimsOf(' --bound-object-kind=Secret --bound-object-name=held');
    expect(bound['kubernetes.io'].secret.name).toBe('held');
    const node = await claimsOf(` --bound-object-kind=Node --bound-object-name=${lifepod.nodeName}`);
    expect(node['kubernetes.io'].node.name).toBe(lifepod.nodeName);
    expect(JSON.parse(await ok(`${create} -o json`)).kind).toBe('TokenRequest');
    expect(await refused('create token absent -n a')).toContain('serviceaccounts "absent" not found');
    expect(await refused(`${create} --duration=1m`)).toContain('may not specify a duration less than 10 minutes');
    expect(await refused(`${create} --bound-object-kind=Pod`)).toContain('bound-object-name');
    expect((await run(`${create} --as outsider`)).stderr).toContain('cannot create resource "serviceaccounts/token"');
  });
}

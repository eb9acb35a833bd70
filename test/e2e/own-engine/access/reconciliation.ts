import { expect, test } from 'vitest';
import type { Role, RoleBinding } from '../../../../src/api/generated/types.ts';
import { lifepod } from '../../../support/own-engine.ts';
import { type KubectlProgram, RBAC } from './kubectl-program.ts';

export function testReconciliation({ own, run, refused }: KubectlProgram): void {
  const name = own('kept');
  const metadata = { name, namespace: own('space') };
  const apiVersion = `${RBAC}/v1`;
  const role = (...resources: string[]): string => {
    const rules = [{ apiGroups: [''], resources, verbs: ['get'] }];
    return JSON.stringify({ apiVersion, kind: 'Role', metadata, rules });
  };
  const binding = (of: string, user: string): string => {
    const roleRef = { apiGroup: RBAC, kind: 'Role', name: of };
    const subjects = [{ apiGroup: RBAC, kind: 'User', name: user }];
    return JSON.stringify({ apiVersion, kind: 'RoleBinding', metadata, roleRef, subjects });
  };
  const reconcile = async (text: string, flags = '') => {
    const { code, stdout, stderr } = await run(`auth reconcile -f -${flags}`, text);
    return { code, printed: stdout.trim(), notes: stderr };
  };
  const resources = async (): Promise<string[]> => {
    const { rules } = await lifepod.get<Role>('role', name, '-n', metadata.namespace);
    return (rules ?? []).flatMap((rule) => rule.resources ?? []);
  };
  const users = async (): Promise<string[]> => {
    const { subjects } = await lifepod.get<RoleBinding>('rolebinding', name, '-n', metadata.namespace);
    return (subjects ?? []).map((subject) => subject.name);
  };

  test('auth reconcile creates a role and its namespace, adds missing rules, and removes others only if asked to', async () => {
    const printed = `role.${RBAC}/${name} reconciled`;
    expect((await reconcile(role('pods'), ' --dry-run=client')).code).toBe(0);
    expect(await refused(`get role ${name} -n ${metadata.namespace}`)).toContain('NotFound');
    const created = await reconcile(role('pods'));
    expect(created).toMatchObject({ code: 0, printed });
    expect(created.notes).toContain('reconciliation required create');
    expect(await reconcile(role('pods'))).toEqual({ code: 0, printed, notes: '' });
    const completed = await reconcile(role('services'));
    expect(completed.notes).toMatch(/reconciliation required update\s+missing rules added:\s+\{Verbs:\[get\]/);
    expect(await resources()).toEqual(['pods', 'services']);
    expect((await reconcile(role('services'), ' --remove-extra-permissions')).notes).toContain('extra rules removed:');
    expect(await resources()).toEqual(['services']);
    expect((await reconcile(role('pods'), ' --dry-run=server')).notes).toContain('is not supported yet');
    expect((await reconcile(role('secrets'), ' --as outsider')).notes).toContain('forbidden: User "outsider" cannot');
  });

  test('auth reconcile adds missing subjects, and replaces a binding to another role', async () => {
    expect((await reconcile(binding(name, 'u'))).printed).toBe(`rolebinding.${RBAC}/${name} reconciled`);
    expect((await reconcile(binding(name, 'v'))).notes).toContain('missing subjects added:');
    expect(await users()).toEqual(['u', 'v']);
    const tightened = await reconcile(binding(name, 'v'), ' --remove-extra-subjects');
    expect(tightened.notes).toContain('extra subjects removed:');
    expect(await users()).toEqual(['v']);
    expect((await reconcile(binding('other', 'v'))).notes).toContain('reconciliation required recreate');
    const { roleRef } = await lifepod.get<RoleBinding>('rolebinding', name, '-n', metadata.namespace);
    expect(roleRef.name).toBe('other');
  });
}

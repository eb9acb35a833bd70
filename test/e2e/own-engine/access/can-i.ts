/** The namespaces, users and roles are those of decisions.ts. */
import { expect, test } from 'vitest';
import { type KubectlProgram, RBAC } from './kubectl-program.ts';

const ABSENT = `RBAC: clusterrole.${RBAC} "absent" not found`;

const ANSWERS: readonly (readonly [string, string])[] = [
  ['list pods -n a --as system:serviceaccount:a:bot', 'yes'],
  ['delete pods -n a --as system:serviceaccount:a:bot', 'no'],
  ['get pods/x -n a --as system:serviceaccount:a:bot', 'yes'],
  ['get pods --subresource=log -n a --as system:serviceaccount:a:bot', 'yes'],
  ['create pods --subresource=exec -n a --as system:serviceaccount:a:bot', 'no'],
  ['get secrets/tls -n a --as june', 'yes'],
  ['get secrets/other -n a --as june', `no - ${ABSENT}`],
  ['list pods -n b --as june', 'yes'],
  ['list pods -A --as auditor', 'yes'],
  ['list pods -A --as vera --as-group viewers', 'no'],
  ['list pods -n a --as vera --as-group others --as-group viewers', 'yes'],
  ['list jobs.batch -n a --as vera --as-group viewers', 'yes'],
  ['create roles -n a --as edgar --as-group editors', 'no'],
  ['get /logs/any --as collector', 'yes'],
  ['get /logs --as collector', 'no'],
  ['* * --as root', 'yes'],
  ['* * --as auditor', 'no'],
  ['impersonate users --as root', 'yes'],
];

export function testCanI({ run, ok, refused }: KubectlProgram): void {
  test('auth can-i answers questions of all forms', async () => {
    const answers = await Promise.all(
      ANSWERS.map(async ([question]) => {
        const { code, stdout } = await run(`auth can-i ${question}`);
        return [question, stdout.trim(), code];
      }),
    );
    expect(answers).toEqual(ANSWERS.map(([question, answer]) => [question, answer, answer === 'yes' ? 0 : 1]));
  });

  test('auth can-i warns of odd questions, and --quiet prints nothing', async () => {
    const nodes = await run('auth can-i list nodes --as root');
    expect(nodes).toMatchObject({ code: 0, stdout: 'yes\n' });
    expect(nodes.stderr).toContain("Warning: resource 'nodes' is not namespace scoped");
    const unknown = await run('auth can-i list unknowns -n a --as root');
    expect(unknown).toMatchObject({ code: 0, stdout: 'yes\n' });
    expect(unknown.stderr).toContain("Warning: the server doesn't have a resource type 'unknowns'");
    expect(await run('auth can-i list pods -n a --quiet --as root')).toMatchObject({ code: 0, stdout: '' });
    expect(await run('auth can-i list pods -n a --quiet --as outsider')).toMatchObject({ code: 1, stdout: '' });
    expect(await refused('auth can-i list')).toContain('you must specify');
  });

  test('auth can-i --list shows the rules of a user in a namespace', async () => {
    const rows = (await ok('auth can-i --list -n a --as june')).split('\n').map((row) => row.trim().split(/ {2,}/));
    expect(rows[0]).toEqual(['Resources', 'Non-Resource URLs', 'Resource Names', 'Verbs']);
    expect(rows).toContainEqual(['secrets', '[]', '[tls]', '[get list watch update create deletecollection]']);
    expect(rows).toContainEqual(['selfsubjectaccessreviews.authorization.k8s.io', '[]', '[]', '[create]']);
    expect(rows).toContainEqual(['[/api/*]', '[]', '[get]']);
    const bare = await ok('auth can-i --list -n a --no-headers --as system:serviceaccount:a:bot');
    expect(bare).not.toContain('Non-Resource URLs');
    expect(bare).toMatch(/^pods\/log +\[\] +\[\] +\[get list watch\]$/m);
    expect(await ok('auth can-i --list -n b --as system:serviceaccount:a:bot')).not.toContain('pods/log');
  });
}

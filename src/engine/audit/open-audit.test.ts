import { lchownSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createMetrics } from '../../platform/metrics.ts';
import { nodePlatform } from '../../platform/node-js.ts';
import { auditSettings, resolveAuditOptions } from './audit-settings.ts';
import { openAudit, readPolicy } from './open-audit.ts';

const folder = mkdtempSync(join(tmpdir(), 'lifepod-audit-'));
afterAll(() => rmSync(folder, { recursive: true }));
const policyFile = (text: string): string => {
  const path = join(folder, 'policy.yaml');
  writeFileSync(path, text);
  return path;
};
const VALID = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata # all\n';

test('a policy is read as YAML or JSON', () => {
  expect(readPolicy(policyFile(VALID))).toMatchObject({ rules: [{ level: 'Metadata' }] });
  const json = JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'None' }] });
  expect(readPolicy(policyFile(json))).toMatchObject({ rules: [{ level: 'None' }] });
});

test.each([
  ['', 'unknown group version field ""'],
  [`${VALID}- level: All\n`, 'rules[1].level: Unsupported value: "All": supported values: "None"'],
  [`${VALID}  verb: [get]\n`, 'strict decoding error: unknown field "rules[0].verb"'],
  [`${VALID}x: [`, 'at line 5, column 5'],
  [`${VALID}kind: Policy\n`, 'Map keys must be unique at line 5, column 1'],
])('the policy %j is refused with its path and the place of the error', (text, message) => {
  const path = policyFile(text);
  expect(() => readPolicy(path)).toThrow(`--audit-policy-file ${path} cannot be used: `);
  expect(() => readPolicy(path)).toThrow(message);
});

test('a policy that does not exist is refused', () => {
  expect(() => readPolicy('/none')).toThrow('--audit-policy-file /none does not exist: give a file with a Policy');
});

const open = async (path: string): Promise<void> => {
  const options = resolveAuditOptions({ auditPolicyFile: policyFile(VALID), auditLogPath: path });
  const settings = auditSettings(options);
  if (settings !== undefined) await (await openAudit(settings, nodePlatform('error'), createMetrics())).close();
};

test.runIf(process.geteuid?.() === 0)(
  'a log behind the link of another user, who could redirect root, is refused',
  async () => {
    const [target, link] = [join(folder, 'redirected.log'), join(folder, 'link.log')];
    symlinkSync(target, link);
    await open(link);
    lchownSync(link, 1000, 1000);
    await expect(open(link)).rejects.toThrow(
      `--audit-log-path ${link} cannot be used: the symbolic link ${link} belongs to the user `,
    );
  },
);

test('the log is opened at once, and a path that cannot be opened is refused', async () => {
  const path = join(folder, 'logs/audit.log');
  await open(path);
  expect(readFileSync(path, 'utf8')).toBe('');
  await expect(open(folder)).rejects.toThrow(`--audit-log-path ${folder} cannot be opened: it is not a regular file`);
  await expect(open(join(path, 'x'))).rejects.toThrow(/^--audit-log-path .* cannot be opened: EEXIST/);
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import type { Pod } from '../../src/api/generated/types.ts';
import { parsePolicy } from '../../src/apiserver/audit/policy.ts';
import { type Started, startRegistry } from '../../src/apiserver/registry/testing.ts';
import type { KubeObject, ResourceRef } from '../../src/machinery/meta.ts';
import { files, read } from './sources.ts';

function resourceOf({ apiVersion = '', kind = '' }: KubeObject): ResourceRef {
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  return { group, version, resource: `${kind.toLowerCase()}s` };
}

const AUDIT_POLICY = 'examples/07-audit-log/policy.yaml';
const manifests = files.filter((path) => /^examples\/.*\.yaml$/.test(path) && path !== AUDIT_POLICY);
const objects = manifests.flatMap((path) =>
  // kubectl parses manifests as YAML 1.1, in which 0755 is an octal number.
  parseAllDocuments(read(path), { version: '1.1' }).map((document) => ({
    path,
    object: document.toJS({ maxAliasCount: -1 }) as KubeObject,
  })),
);
const [, snippet = ''] = /^```yaml\n(spec:\n[\s\S]*?deferContainers:[\s\S]*?)^```$/m.exec(read('README.md')) ?? [];
objects.push({
  path: 'README.md',
  object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'readme' }, ...(parse(snippet) as object) },
});

let started: Started;
beforeAll(async () => {
  started = await startRegistry();
});
afterAll(() => started?.registry.close());

test('the manifests of the README and of the examples include Pods with defer containers', () => {
  const deferring = objects.filter(({ object }) => (object as Pod).spec?.deferContainers !== undefined);
  expect(deferring.map(({ path }) => path)).toEqual(
    expect.arrayContaining([
      'README.md',
      'examples/02-cleanup-after-exit/worker.yaml',
      'examples/06-postgresql/database.yaml',
    ]),
  );
});

test.each(objects)(
  'the API accepts $object.kind $object.metadata.name of $path without a warning',
  async ({ object }) => {
    const warnings: string[] = [];
    await started.registry.create(resourceOf(object), 'default', object, {
      dryRun: true,
      fieldValidation: 'Strict',
      onWarning: (text) => warnings.push(text),
    });
    expect(warnings).toEqual([]);
  },
);

test('the audit policy of the examples is valid', () => {
  expect(() => parsePolicy(parse(read(AUDIT_POLICY)))).not.toThrow();
});

/** The registry has a memory store, and no agent runs the Pods. Tests that need a node are in test/e2e. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PODS } from '../../src/api/resources.ts';
import type { KubeObject } from '../../src/machinery/meta.ts';
import { type KubectlFixture, startKubectlFixture } from './kubectl-fixture.ts';

const NODE_NAME = 'node-1';

let fixture: KubectlFixture;
beforeAll(async () => {
  fixture = await startKubectlFixture();
});
afterAll(() => fixture?.close());

interface Entry {
  name: string;
  image?: string;
  imageFrom?: string;
  timeoutSeconds?: number;
  trigger?: string;
  command?: string[];
  env?: object[];
}

const entries: Entry[] = [
  { name: 'flush', image: 'busybox:1.28', command: ['sync'], timeoutSeconds: 20 },
  { name: 'upload', image: 'busybox:1.28', trigger: 'PostExit', env: [{ name: 'A', value: 'b' }] },
];

const pod = (name: string, deferContainers: Entry[] = entries, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    containers: [{ name: 'app', image: 'busybox:1.28', command: ['sleep', '3600'] }],
    deferContainers,
    terminationGracePeriodSeconds: 60,
    ...more,
  },
});

const withEntry = (index: number, change: Partial<Entry>): Entry[] =>
  entries.map((entry, at) => (at === index ? { ...entry, ...change } : entry));

describe('kubectl explain', () => {
  test('kubectl explain pod.spec.deferContainers shows the fields of an entry', async () => {
    const text = await fixture.ok('explain', 'pod.spec.deferContainers');
    expect(text).toContain('FIELD: deferContainers <[]DeferContainer>');
    expect(text).toMatch(/^ {2}trigger\t<string>$/m);
    expect(text).toMatch(/^ {2}timeoutSeconds\t<integer>$/m);
    expect(text).toMatch(/^ {2}livenessProbe\t<Probe>$/m);
    expect(await fixture.ok('explain', 'pod.spec.deferContainers.trigger')).toContain('Defaults to PreExit.');
    expect(await fixture.ok('explain', 'pod.spec.deferContainers.resources.limits')).toContain('<map[string]Quantity>');
    expect(text.replace(/\s+/g, ' ')).toContain(
      'preStop hooks start together with the first PreExit entry, unless preStopPolicy is AfterPreExit',
    );
    for (const field of ['imageFrom', 'onReasons', 'when', 'failurePolicy']) {
      expect(text).toMatch(new RegExp(`^ {2}${field}\t<`, 'm'));
    }
  });

  test('kubectl explain pod.spec.deferContainers lists no field that is refused', async () => {
    const text = await fixture.ok('explain', 'pod.spec.deferContainers');
    for (const field of ['lifecycle', 'readinessProbe', 'startupProbe']) {
      expect(text).not.toMatch(new RegExp(`^ {2}${field}\t`, 'm'));
      const exec = { exec: { command: ['true'] } };
      const entry = { ...entries[0], [field]: field === 'lifecycle' ? { preStop: exec } : exec } as Entry;
      const refused = await fixture.refused(['create', '-f', '-'], JSON.stringify(pod('refused', [entry])));
      expect(refused).toContain(`spec.deferContainers[0].${field}: Forbidden: may not be set for defer containers`);
    }
  });

  test('kubectl explain describes fields of entries in terms of defer containers', async () => {
    const explained = async (field: string) =>
      (await fixture.ok('explain', `pod.spec.deferContainers.${field}`)).replace(/\s+/g, ' ');
    expect(await explained('restartPolicy')).toContain('Never (default): the next entry runs.');
    expect(await explained('restartPolicy')).not.toContain('init container');
    expect(await explained('image')).toContain('Exactly one of image and imageFrom must be set.');
    expect(await explained('terminationMessagePolicy')).toContain('FallbackToLogsOnError (default)');
    expect((await fixture.ok('explain', 'pod.spec.postExitGracePeriodSeconds')).replace(/\s+/g, ' ')).toContain(
      'Therefore, a single PostExit entry without timeoutSeconds halves the time that app containers have to stop.',
    );
    expect((await fixture.ok('explain', 'pod.status.phase')).replace(/\s+/g, ' ')).toContain(
      'Terminating: its defer containers are due or running',
    );
  });

  test('kubectl explain --recursive lists the defer fields of a Pod', async () => {
    const text = await fixture.ok('explain', 'pod.spec', '--recursive');
    expect(text).toMatch(/^ {2}deferContainers\t<\[\]DeferContainer>$/m);
    expect(text).toMatch(/^ {4}trigger\t<string>$/m);
    expect(text).toMatch(/^ {2}prePullDeferImages\t<boolean>$/m);
    expect(text).toMatch(/^ {2}deferContainerGracePeriodExtensionInterval\t<integer>$/m);
  });

  test('kubectl explain knows pod.status.termination and pod.status.deferContainerStatuses', async () => {
    expect(await fixture.ok('explain', 'pod.status.termination')).toMatch(/^ {2}deadline\t<string> -required-$/m);
    expect(await fixture.ok('explain', 'pod.status.deferContainerStatuses')).toContain('<[]ContainerStatus>');
  });
});

describe('kubectl apply, client-side', () => {
  test('client-side apply creates a Pod, and leaves it unchanged the second time', async () => {
    expect(await fixture.apply(pod('applied'))).toBe('pod/applied created\n');
    expect(await fixture.apply(pod('applied'))).toBe('pod/applied unchanged\n');
    const { spec } = await fixture.get('pod/applied');
    expect(spec.prePullDeferImages).toBe(true);
    expect(spec.deferContainers).toMatchObject([
      { ...entries[0], trigger: 'PreExit', restartPolicy: 'Never', terminationMessagePolicy: 'FallbackToLogsOnError' },
      { ...entries[1], restartPolicy: 'Never' },
    ]);
  });

  test('client-side apply changes the image of one entry: the list is merged by name', async () => {
    const changed = pod('applied', withEntry(1, { image: 'busybox:1.29' }));
    expect(await fixture.apply(changed)).toBe('pod/applied configured\n');
    const { spec } = await fixture.get('pod/applied');
    expect(spec.deferContainers.map(({ image }: Entry) => image)).toEqual(['busybox:1.28', 'busybox:1.29']);
    expect(spec.deferContainers[1]).toMatchObject({ trigger: 'PostExit', imagePullPolicy: 'IfNotPresent' });
  });

  test.each<[string, Entry[], string]>([
    [
      'the command of an entry',
      withEntry(0, { command: ['true'] }),
      'spec.deferContainers[0].command[0]: "sync" -> "true"',
    ],
    [
      'the trigger of an entry',
      withEntry(1, { trigger: 'PreExit' }),
      'spec.deferContainers[1].trigger: "PostExit" -> "PreExit"',
    ],
  ])('client-side apply of another change is refused with the difference: %s', async (_, list, difference) => {
    const text = await fixture.refused(['apply', '-f', '-'], JSON.stringify(pod('applied', list)));
    expect(text).toContain(
      'The Pod "applied" is invalid: spec: Forbidden: pod updates may not change fields other than',
    );
    expect(text).toContain('`spec.deferContainers[*].image`');
    expect(text).toContain(difference);
  });

  test.each<[string, Entry[]]>([
    ['added', [...entries, { name: 'third', image: 'busybox:1.28', trigger: 'PostExit' }]],
    ['removed', entries.slice(0, 1)],
  ])('client-side apply is refused if an entry was %s', async (_, list) => {
    const text = await fixture.refused(['apply', '-f', '-'], JSON.stringify(pod('applied', list)));
    expect(text).toContain('spec.deferContainers: Forbidden: pod updates may not add or remove containers');
  });

  test('kubectl patch merges an entry by its name', async () => {
    const patch = JSON.stringify({ spec: { deferContainers: [{ name: 'flush', image: 'busybox:1.30' }] } });
    expect(await fixture.ok('patch', 'pod', 'applied', '-p', patch)).toBe('pod/applied patched\n');
    const { spec } = await fixture.get('pod/applied');
    expect(spec.deferContainers.map(({ name, image }: Entry) => [name, image])).toEqual([
      ['flush', 'busybox:1.30'],
      ['upload', 'busybox:1.29'],
    ]);
  });

  test('kubectl edit cannot change the list, because its own types lack the field, but can change the rest of the Pod', async () => {
    const edit = (expression: string) =>
      fixture.kubectl(['edit', 'pod', 'applied'], { env: { KUBE_EDITOR: `sed -i '${expression}'` } });
    expect(await edit('s/image: busybox:1.30/image: busybox:1.31/')).toMatchObject({
      code: 1,
      err: expect.stringContaining('unable to find api field in struct PodSpec for the json field "deferContainers"'),
    });
    expect(await edit('s/^  name: applied/  labels: {a: b}\\n  name: applied/')).toMatchObject({
      code: 0,
      out: 'pod/applied edited\n',
    });
    expect((await fixture.get('pod/applied')).metadata.labels).toEqual({ a: 'b' });
  });

  test('kubectl replace of a Pod without the fields leaves them unchanged', async () => {
    const { spec, ...object } = await fixture.get('pod/applied');
    const { deferContainers, prePullDeferImages, preStopPolicy, ...known } = spec;
    const input = JSON.stringify({ ...object, metadata: { ...object.metadata, labels: { c: 'd' } }, spec: known });
    expect(await fixture.kubectl(['replace', '-f', '-'], { input })).toEqual({
      code: 0,
      out: 'pod/applied replaced\n',
      err: '',
    });
    const replaced = await fixture.get('pod/applied');
    expect(replaced.metadata.labels).toEqual({ c: 'd' });
    expect(replaced.spec).toEqual(spec);
  });

  test('a patch cannot remove an entry', async () => {
    const text = await fixture.refused(['patch', 'pod', 'applied', '-p', '{"spec": {"deferContainers": null}}']);
    expect(text).toContain('spec.deferContainers: Forbidden: pod updates may not add or remove containers');
  });

  test('kubectl replace changes the image of an entry', async () => {
    const object = await fixture.get('pod/applied');
    object.spec.deferContainers[0].image = 'busybox:1.32';
    const { code, out } = await fixture.kubectl(['replace', '-f', '-'], { input: JSON.stringify(object) });
    expect([code, out]).toEqual([0, 'pod/applied replaced\n']);
    expect((await fixture.get('pod/applied')).spec.deferContainers[0].image).toBe('busybox:1.32');
  });

  test('the image of an entry cannot change once the Pod is terminating', async () => {
    await fixture.apply(pod('terminating', entries, { nodeName: NODE_NAME }));
    await fixture.ok('delete', 'pod', 'terminating', '--wait=false');
    const changed = pod('terminating', withEntry(0, { image: 'busybox:1.29' }), { nodeName: NODE_NAME });
    const text = await fixture.refused(['apply', '-f', '-'], JSON.stringify(changed));
    expect(text).toContain('spec.deferContainers[0].image: Forbidden: may not be changed once the pod is terminating');
  });
});

describe('kubectl apply --server-side', () => {
  const serverSide = (manifest: object, ...more: string[]): Promise<string> =>
    fixture.apply(manifest, '--server-side', ...more);
  const managers = async (name: string): Promise<string[]> => {
    const { metadata } = await fixture.get(`pod/${name}`, '--show-managed-fields');
    return metadata.managedFields.map((entry: { manager: string; operation: string }) =>
      [entry.manager, entry.operation].join(' '),
    );
  };

  test('server-side apply creates a Pod, and leaves it unchanged the second time', async () => {
    expect(await serverSide(pod('server-side'))).toBe('pod/server-side serverside-applied\n');
    const { metadata, spec } = await fixture.get('pod/server-side');
    expect(spec.deferContainers).toMatchObject(entries);
    expect(await serverSide(pod('server-side'))).toBe('pod/server-side serverside-applied\n');
    expect((await fixture.get('pod/server-side')).metadata.resourceVersion).toBe(metadata.resourceVersion);
    expect(await managers('server-side')).toEqual(['kubectl Apply']);
  });

  test('server-side apply changes the image of one entry; another change is refused', async () => {
    await serverSide(pod('server-side', withEntry(1, { image: 'busybox:1.29' })));
    const { spec } = await fixture.get('pod/server-side');
    expect(spec.deferContainers.map(({ image }: Entry) => image)).toEqual(['busybox:1.28', 'busybox:1.29']);
    const other = JSON.stringify(pod('server-side', withEntry(0, { command: ['true'] })));
    expect(await fixture.refused(['apply', '--server-side', '-f', '-'], other)).toContain(
      'spec.deferContainers[0].command[0]: "sync" -> "true"',
    );
  });

  test("server-side apply over another manager's change is a conflict, unless it is forced", async () => {
    const patch = JSON.stringify({ spec: { deferContainers: [{ name: 'flush', image: 'busybox:1.30' }] } });
    await fixture.ok('patch', 'pod', 'server-side', '-p', patch);
    const mine = pod('server-side', withEntry(0, { image: 'busybox:1.31' }));
    const text = await fixture.refused(['apply', '--server-side', '-f', '-'], JSON.stringify(mine));
    expect(text).toMatch(
      /Apply failed with 1 conflict: conflict with "kubectl-patch" using v1 at \S+: \.spec\.deferContainers\[name="flush"\]\.image/,
    );
    await serverSide(mine, '--force-conflicts');
    expect((await fixture.get('pod/server-side')).spec.deferContainers[0].image).toBe('busybox:1.31');
    expect(await managers('server-side')).toEqual(['kubectl Apply']);
  });

  test('server-side apply removes a label that it applied before, and keeps labels of other managers', async () => {
    const labelled = (labels: object) => {
      const manifest = pod('labelled');
      return { ...manifest, metadata: { ...manifest.metadata, labels } };
    };
    await serverSide(labelled({ mine: 'x', kept: 'y' }));
    await fixture.ok('label', 'pod', 'labelled', 'theirs=z');
    await serverSide(labelled({ kept: 'y' }));
    expect((await fixture.get('pod/labelled')).metadata.labels).toEqual({ kept: 'y', theirs: 'z' });
  });

  test('server-side dry run and diff store nothing', async () => {
    expect(await serverSide(pod('server-dry'), '--dry-run=server')).toBe(
      'pod/server-dry serverside-applied (server dry run)\n',
    );
    expect(await fixture.refused(['get', 'pod', 'server-dry'])).toContain('not found');
    const input = JSON.stringify(pod('labelled', withEntry(0, { image: 'busybox:1.33' })));
    const { code, out } = await fixture.kubectl(['diff', '--server-side', '-f', '-'], { input });
    expect([code, out]).toEqual([1, expect.stringMatching(/^\+ {4}image: busybox:1\.33$/m)]);
  });

  test('server-side apply takes over fields of a client-side apply', async () => {
    await fixture.apply(pod('migrated'));
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'migrated' }, target: { name: NODE_NAME } };
    await fixture.registry.create(PODS, 'default', binding as KubeObject, { name: 'migrated', subresource: 'binding' });
    const input = JSON.stringify(pod('migrated'));
    expect(await fixture.kubectl(['apply', '--server-side', '-f', '-'], { input })).toEqual({
      code: 0,
      out: 'pod/migrated serverside-applied\n',
      err: '',
    });
    await serverSide(pod('migrated', withEntry(0, { image: 'busybox:1.29' })));
    const { spec } = await fixture.get('pod/migrated');
    expect(spec.deferContainers.map(({ image }: Entry) => image)).toEqual(['busybox:1.29', 'busybox:1.28']);
    // The API sorts managers by time in whole seconds, so their order is not fixed.
    expect((await managers('migrated')).sort()).toEqual([
      'before-first-apply Update',
      'kubectl Apply',
      'kubectl-last-applied Apply',
    ]);
  });

  test('server-side apply validates strictly', async () => {
    const misspelt = pod('server-strict', [{ ...entries[0], triger: 'PostExit' } as unknown as Entry]);
    expect(await fixture.refused(['apply', '--server-side', '-f', '-'], JSON.stringify(misspelt))).toContain(
      'unknown field "spec.deferContainers[0].triger"',
    );
  });

  test('server-side apply works for other kinds', async () => {
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'applied' },
      spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
    };
    expect(await serverSide(service)).toBe('service/applied serverside-applied\n');
    expect(await serverSide({ ...service, spec: { ...service.spec, ports: [{ port: 81 }] } })).toContain('applied');
    const { spec } = await fixture.get('service/applied');
    expect(spec.ports).toEqual([{ port: 81, protocol: 'TCP', targetPort: 81 }]);
  });
});

describe('bad input', () => {
  test('a server dry run validates, and stores nothing', async () => {
    expect(await fixture.apply(pod('dry'), '--dry-run=server')).toBe('pod/dry created (server dry run)\n');
    const bad = pod('dry', [{ name: 'app', image: 'x', trigger: 'Later' }]);
    const text = await fixture.refused(['apply', '--dry-run=server', '-f', '-'], JSON.stringify(bad));
    expect(text).toContain('spec.deferContainers[0].name: Duplicate value: "app"');
    expect(text).toContain('spec.deferContainers[0].trigger: Unsupported value: "Later"');
    expect(await fixture.refused(['get', 'pod', 'dry'])).toContain('not found');
  });

  test('an unknown field of an entry is refused, or gives a warning with --validate=warn', async () => {
    const misspelt = pod('strict', [{ ...entries[0], triger: 'PostExit' } as unknown as Entry]);
    const unknown = 'unknown field "spec.deferContainers[0].triger"';
    expect(await fixture.refused(['apply', '-f', '-'], JSON.stringify(misspelt))).toContain(
      `strict decoding error: ${unknown}`,
    );
    const warned = await fixture.kubectl(['create', '--validate=warn', '-f', '-'], { input: JSON.stringify(misspelt) });
    expect(warned).toMatchObject({ code: 0, out: 'pod/strict created\n' });
    expect(warned.err).toContain(`Warning: ${unknown}`);
  });

  test('a field of an entry with a wrong type is refused', async () => {
    const wrong = pod('wrong', [{ ...entries[0], timeoutSeconds: '5' } as unknown as Entry]);
    expect(await fixture.refused(['create', '--validate=false', '-f', '-'], JSON.stringify(wrong))).toContain(
      'json: cannot unmarshal string into Go struct field',
    );
  });
});

describe('the annotation for typed clients', () => {
  const KEY = 'pod.alpha.kubernetes.io/defer-containers';
  const annotated = (name: string, text: string) => {
    const { spec, ...rest } = pod(name);
    const { deferContainers, ...known } = spec;
    return { ...rest, metadata: { name, annotations: { [KEY]: text } }, spec: known };
  };

  test('the annotation with entries is read on create, and cannot be changed', async () => {
    const created = await fixture.kubectl(['create', '-f', '-'], {
      input: JSON.stringify(annotated('annotated', JSON.stringify(entries))),
    });
    expect(created).toMatchObject({ code: 0, err: '' });
    const { spec } = await fixture.get('pod/annotated');
    expect(spec.deferContainers).toMatchObject(entries);
    expect(await fixture.refused(['annotate', '--overwrite', 'pod', 'annotated', `${KEY}=[]`])).toContain(
      'may not remove or update defer container annotations',
    );
    expect(await fixture.ok('annotate', 'pod', 'annotated', 'note=x')).toBe('pod/annotated annotated\n');
  });

  test('the annotation with settings sets the other fields, and cannot be changed', async () => {
    const settings = 'pod.alpha.kubernetes.io/defer-settings';
    const given = annotated('settings', JSON.stringify(entries));
    const text = '{"preStopPolicy": "AfterPreExit", "postExitGracePeriodSeconds": 20}';
    const input = JSON.stringify({
      ...given,
      metadata: { ...given.metadata, annotations: { ...given.metadata.annotations, [settings]: text } },
    });
    expect(await fixture.kubectl(['create', '-f', '-'], { input })).toMatchObject({ code: 0, err: '' });
    const { spec } = await fixture.get('pod/settings');
    expect(spec).toMatchObject({ preStopPolicy: 'AfterPreExit', postExitGracePeriodSeconds: 20 });
    expect(await fixture.refused(['annotate', '--overwrite', 'pod', 'settings', `${settings}={}`])).toContain(
      'may not remove or update defer container annotations',
    );
  });

  test('a PodTemplate with the annotation does not get the field; a PUT that drops the field gives a warning', async () => {
    const { metadata, spec } = annotated('tpl', JSON.stringify(entries));
    const template = { metadata: { annotations: metadata.annotations }, spec };
    const kind = { apiVersion: 'v1', kind: 'PodTemplate', metadata: { name: 'tpl' } };
    const run = (verb: string, object: object) => fixture.kubectl([verb, '-f', '-'], { input: JSON.stringify(object) });
    expect(await run('create', { ...kind, template })).toMatchObject({ code: 0, err: '' });
    expect((await fixture.get('podtemplate/tpl')).template.spec).not.toHaveProperty('deferContainers');
    const withField = { ...kind, template: { spec: { ...spec, deferContainers: entries } } };
    expect(await run('replace', withField)).toMatchObject({ code: 0, err: '' });
    const removed = await run('replace', { ...kind, template: { spec } });
    expect(removed.code).toBe(0);
    expect(removed.err).toContain(
      'Warning: template.spec: the update omits and therefore removes deferContainers, preStopPolicy, prePullDeferImages;',
    );
  });

  test('kubectl edit changes the annotation of a template', async () => {
    const { metadata, spec } = annotated('edited', JSON.stringify(entries));
    const template = { metadata: { annotations: metadata.annotations }, spec };
    await fixture.apply({ apiVersion: 'v1', kind: 'PodTemplate', metadata: { name: 'edited' }, template });
    const env = { KUBE_EDITOR: "sed -i '/defer-containers:/s/busybox:1.28/busybox:1.30/'" };
    expect(await fixture.kubectl(['edit', 'podtemplate', 'edited'], { env })).toMatchObject({
      code: 0,
      out: 'podtemplate/edited edited\n',
    });
    const edited = await fixture.get('podtemplate/edited');
    expect(JSON.parse(edited.template.metadata.annotations[KEY])[0].image).toBe('busybox:1.30');
  });

  test('an annotation with bad JSON is refused', async () => {
    const text = await fixture.refused(['create', '-f', '-'], JSON.stringify(annotated('bad', '[{')));
    expect(text).toContain(`metadata.annotations[${KEY}]: Invalid value: "[{"`);
  });
});

describe('a Pod whose defer containers run', () => {
  const status = (patch: object) =>
    fixture.registry.patch(
      PODS,
      'default',
      'ending',
      'application/merge-patch+json',
      { status: patch },
      {
        subresource: 'status',
      },
    );
  const container = (name: string, state: object) => ({
    name,
    image: 'busybox:1.28',
    imageID: '',
    ready: false,
    restartCount: 0,
    state,
  });

  test('kubectl get -w shows Defer:i/n while entries run, and Terminating before and after', async () => {
    await fixture.apply(pod('ending', entries, { nodeName: NODE_NAME }));
    const lines = fixture.follow('get', 'pod', 'ending', '-w', '--no-headers');
    const shown = async (): Promise<string | undefined> =>
      /^ending +0\/1 +(\S+) /.exec((await lines.next()).value ?? '')?.[1];
    expect(await shown()).toBe('Pending');
    await fixture.ok('delete', 'pod', 'ending', '--wait=false');
    expect(await shown()).toBe('Terminating');
    const termination = {
      reason: 'Deleted',
      startedAt: '2026-01-01T00:00:00.000000Z',
      deadline: '2026-01-01T00:01:00.000000Z',
    };
    const running = container('flush', { running: {} });
    const pending = container('upload', { waiting: { reason: 'PendingDefer' } });
    await status({ phase: 'Terminating', termination, deferContainerStatuses: [running, pending] });
    expect(await shown()).toBe('Defer:0/2');
    const failed = container('flush', { terminated: { exitCode: 1, reason: 'Error' } });
    await status({ deferContainerStatuses: [failed, container('upload', { running: {} })] });
    expect(await shown()).toBe('Defer:1/2');
    const done = container('upload', { terminated: { exitCode: 0, reason: 'Completed' } });
    await status({ phase: 'Running', deferContainerStatuses: [failed, done] });
    expect(await shown()).toBe('Terminating');
  });

  describe('the defer subresource', () => {
    const PATH = '/api/v1/namespaces/default/pods/ENTRY/defer';
    const giveUp = (pod: string, skip: string) =>
      fixture.kubectl(['replace', '--raw', PATH.replace('ENTRY', pod), '-f', '-'], {
        input: JSON.stringify({ apiVersion: 'lifepod.io/v1', kind: 'DeferControl', skip }),
      });

    test('the defer subresource gives up an entry; the Event names the user', async () => {
      await fixture.apply(pod('hanging', entries, { nodeName: NODE_NAME }));
      expect(await giveUp('hanging', 'upload')).toMatchObject({
        code: 1,
        err: expect.stringMatching(
          /Operation cannot be fulfilled on pods\/defer "hanging": the pod is not terminating/,
        ),
      });
      await fixture.ok('delete', 'pod', 'hanging', '--wait=false');
      const ended = container('flush', { terminated: { exitCode: 0, reason: 'Completed' } });
      const termination = {
        reason: 'Deleted',
        startedAt: '2026-01-01T00:00:00.000000Z',
        deadline: '2026-01-01T00:01:00.000000Z',
      };
      const body = { status: { phase: 'Terminating', termination, deferContainerStatuses: [ended] } };
      await fixture.registry.patch(PODS, 'default', 'hanging', 'application/merge-patch+json', body, {
        subresource: 'status',
      });
      const answer = await giveUp('hanging', 'upload');
      expect(answer.code).toBe(0);
      expect(JSON.parse(answer.out)).toMatchObject({
        kind: 'DeferControl',
        metadata: { name: 'hanging' },
        skip: 'upload',
      });
      expect((await fixture.get('pod/hanging')).status.termination).toEqual({ ...termination, skip: ['upload'] });
      const events = await fixture.ok('events', '--for', 'pod/hanging');
      expect(events).toMatch(
        /Normal\s+DeferContainerGivenUp\s+Pod\/hanging\s+User "\S+" gave up defer container "upload"/,
      );
    });

    test('the defer subresource changes nothing for an entry that has ended, and refuses an unknown one', async () => {
      const { metadata } = await fixture.get('pod/hanging');
      expect(await giveUp('hanging', 'flush')).toMatchObject({ code: 0 });
      expect((await fixture.get('pod/hanging')).metadata.resourceVersion).toBe(metadata.resourceVersion);
      const { code, err } = await giveUp('hanging', 'none');
      expect(code).toBe(1);
      expect(err).toContain(
        'The DeferControl "hanging" is invalid: skip: Unsupported value: "none": supported values: "flush", "upload"',
      );
    });

    test('discovery lists the defer subresource with its verb and kind', async () => {
      const { resources } = JSON.parse(await fixture.ok('get', '--raw', '/api/v1'));
      expect(resources).toContainEqual({
        name: 'pods/defer',
        singularName: '',
        namespaced: true,
        group: 'lifepod.io',
        version: 'v1',
        kind: 'DeferControl',
        verbs: ['update'],
      });
    });
  });

  test('kubectl get -o yaml shows termination and entries', async () => {
    const text = await fixture.ok('get', 'pod', 'ending', '-o', 'yaml');
    expect(text).toMatch(/^ {2}termination:\n {4}deadline: "2026-01-01T00:01:00.000000Z"\n {4}reason: Deleted$/m);
    expect(text).toMatch(/^ {2}deferContainers:\n {2}- command:\n {4}- sync$/m);
  });

  test('kubectl logs -c refuses the name of an entry', async () => {
    expect(await fixture.refused(['logs', 'ending', '-c', 'upload'])).toContain(
      'container upload is not valid for pod ending',
    );
  });

  test('the log subresource accepts the name of an entry', async () => {
    const path = '/api/v1/namespaces/default/pods/ending/log?container=';
    expect(await fixture.ok('get', '--raw', `${path}upload`)).toBe('log of upload\n');
    expect(await fixture.refused(['get', '--raw', `${path}none`])).toContain(
      'container none is not valid for pod ending',
    );
  });
});

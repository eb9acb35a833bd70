import { describe, expect, it, vi } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { Container, ContainerStatus, DeferContainer, Pod } from '../../../../generated/types.ts';
import { podKind } from '../index.ts';
import { podOf, statusOf } from '../pod-fixtures.ts';

const BETA = 'pod.beta.kubernetes.io/init-containers';
const ALPHA = 'pod.alpha.kubernetes.io/init-containers';
const BETA_STATUSES = 'pod.beta.kubernetes.io/init-container-statuses';
const ALPHA_STATUSES = 'pod.alpha.kubernetes.io/init-container-statuses';
const NOW = { now: 0 };

/** As a client sends it. */
const annotated = (annotations: Record<string, string>, initContainers?: Container[]): Pod => {
  const pod = podOf(initContainers === undefined ? {} : { initContainers });
  return { ...pod, metadata: { ...pod.metadata, annotations } };
};
/** As the API server makes it of what was sent, up to its validation. */
function created(pod: Pod): Pod {
  const copy = structuredClone(pod);
  podKind.defaults?.(copy);
  podKind.prepareForCreate?.(copy, NOW);
  return copy;
}
const initNames = (pod: Pod): string[] | undefined => created(pod).spec?.initContainers?.map(({ name }) => name);
const errorsOf = (pod: Pod): string[] => podKind.validateCreate(created(pod)).map(fieldErrorText);

const first = { name: 'first', image: 'busybox:1.28', command: ['sh', '-c', 'true'] };
const second = { name: 'second', image: 'busybox:1.28' };
const json = JSON.stringify([first, second]);

describe('on create', () => {
  it.each<[string, Record<string, string>]>([
    ['the beta form', { [BETA]: json }],
    ['the alpha form', { [ALPHA]: json }],
    ['both forms', { [BETA]: json, [ALPHA]: json }],
    ['white space and line ends', { [BETA]: `\n${JSON.stringify([first, second], undefined, 4)}\n ` }],
    ['names of fields in any case', { [BETA]: json.replaceAll('"name"', '"Name"').replaceAll('"image"', '"IMAGE"') }],
    ['fields that nobody knows', { [BETA]: JSON.stringify([{ ...first, colour: 'red' }, second]) }],
  ])('%s: read into spec.initContainers, with the defaults of containers', (_, annotations) => {
    const pod = created(annotated(annotations));
    expect(pod.spec?.initContainers).toMatchObject([
      { ...first, imagePullPolicy: 'IfNotPresent', terminationMessagePath: '/dev/termination-log' },
      { ...second, imagePullPolicy: 'IfNotPresent' },
    ]);
    expect(podKind.validateCreate(pod)).toEqual([]);
    expect(pod.metadata.annotations).toEqual(annotations);
  });

  it.each(['[]', 'null'])('%s says that there are none', (text) => {
    expect(created(annotated({ [BETA]: text })).spec?.initContainers).toBeUndefined();
    expect(errorsOf(annotated({ [BETA]: text }))).toEqual([]);
  });

  it.each<[string, string, RegExp]>([
    ['no JSON', "[{'name': 'a'}]", /Invalid value: "\[\{'name': 'a'\}\]": Expected property name/],
    ['nothing', '', /Invalid value: "": Unexpected end of JSON input/],
    ['half of it', json.slice(0, 20), /Invalid value: .*: Unterminated string in JSON/],
    ['an object', '{}', /Invalid value: "\{\}": json: cannot unmarshal object into Go struct field/],
    ['a list of texts', '["a"]', /Invalid value: .*: json: cannot unmarshal string into Go/],
    ['a wrong type', '[{"name": 1}]', /Invalid value: .*: json: cannot unmarshal number into Go .* of type string/],
  ])('%s is an error at the annotation', (_, text, message) => {
    for (const key of [BETA, ALPHA]) {
      const [error = '', ...others] = errorsOf(annotated({ [key]: text }));
      expect(others).toEqual([]);
      expect(error.startsWith(`metadata.annotations[${key}]: Invalid value`)).toBe(true);
      expect(error).toMatch(message);
    }
  });

  it.each([
    ['a list', '[', ']'],
    ['an object', '{"a":', '}'],
  ])('levels without end in %s are an error at the annotation', (_, open, close) => {
    const deep = `${open.repeat(10_000)}0${close.repeat(10_000)}`;
    for (const key of [BETA, ALPHA]) {
      const text = `[{"name":"a","image":"b","resources":{"limits":{"cpu":${deep}}}}]`;
      const [error = '', ...others] = errorsOf(annotated({ [key]: text }));
      expect(others).toEqual([]);
      expect(error.startsWith(`metadata.annotations[${key}]: Invalid value`)).toBe(true);
      expect(error.endsWith(': exceeded max depth')).toBe(true);
    }
  });

  it('an annotation that is longer than all may be is not read', () => {
    const text = `[{${'"a":0,'.repeat(50_000)}"name":"a"}]`;
    const parse = vi.spyOn(JSON, 'parse');
    const errors = errorsOf(annotated({ [BETA]: text }));
    expect(parse.mock.calls.filter(([parsed]) => parsed === text)).toEqual([]);
    parse.mockRestore();
    expect(errors).toEqual([
      'metadata.annotations: Too long: may not be more than 262144 bytes',
      expect.stringMatching(/^metadata\.annotations\[.*\]: Invalid value: .*: may not be more than 262144 bytes$/),
    ]);
  });

  it('a field that nobody knows is not compared with all that there are', () => {
    const fields = Array.from({ length: 10_000 }, (_, index) => `"A${index}":0`);
    const pod = annotated({ [BETA]: `[{"name":"a","image":"b",${fields.join()}}]` });
    const lowerCase = vi.spyOn(String.prototype, 'toLowerCase');
    created(pod);
    const times = lowerCase.mock.calls.length;
    lowerCase.mockRestore();
    // Once for each, and some for other texts.
    expect(times).toBeLessThan(20_000);
  });

  it('a container that is not valid is an error of the field that it was read into', () => {
    expect(errorsOf(annotated({ [BETA]: '[{"name": "Not_valid", "image": "x"}]' }))).toEqual([
      expect.stringMatching(/^spec\.initContainers\[0\]\.name: Invalid value: "Not_valid"/),
    ]);
    expect(errorsOf(annotated({ [BETA]: '[{"name": "app", "image": "x"}]' }))).toEqual([
      'spec.initContainers[0].name: Duplicate value: "app"',
    ]);
  });

  it.each<[string, Record<string, string>, Container[]]>([
    ['as they were sent', { [BETA]: json }, [first, second]],
    [
      'with their defaults and the token of the ServiceAccount',
      { [ALPHA]: json },
      [
        { ...first, volumeMounts: [{ name: 'kube-api-access-x7f2q', mountPath: '/var/run/secrets' }] },
        { ...second, imagePullPolicy: 'IfNotPresent', resources: {} },
      ],
    ],
  ])('the field beside the same containers wins: %s', (_, annotations, initContainers) => {
    const pod = annotated(annotations, initContainers);
    pod.spec = { ...(pod.spec ?? { containers: [] }), volumes: [{ name: 'kube-api-access-x7f2q', emptyDir: {} }] };
    expect(errorsOf(pod)).toEqual([]);
    expect(created(pod).spec?.initContainers).toMatchObject(initContainers);
  });

  it.each<[string, Record<string, string>, Container[] | undefined, string]>([
    ['others in the field', { [BETA]: json }, [first], BETA],
    ['none in the annotation', { [ALPHA]: '[]' }, [first], ALPHA],
    ['others in the two forms', { [BETA]: json, [ALPHA]: JSON.stringify([first]) }, undefined, ALPHA],
  ])('%s: an error, for it cannot be both', (_, annotations, initContainers, key) => {
    expect(errorsOf(annotated(annotations, initContainers))).toEqual([
      `metadata.annotations[${key}]: Invalid value: ${JSON.stringify(annotations[key])}: must be equal to spec.initContainers where both are given`,
    ]);
  });

  it('of two forms that differ the newer one is read', () => {
    expect(initNames(annotated({ [ALPHA]: '[{"name": "old", "image": "x"}]', [BETA]: json }))).toEqual([
      'first',
      'second',
    ]);
  });

  it('a client sets no statuses', () => {
    const pod = created(annotated({ [BETA]: json, [BETA_STATUSES]: '[]', [ALPHA_STATUSES]: '[]', other: 'x' }));
    expect(pod.metadata.annotations).toEqual({ [BETA]: json, other: 'x' });
  });

  it('warns of the form, and of what is not read of it', () => {
    const text = JSON.stringify([{ ...first, colour: 'red', env: [{ name: 'A', value: 'b', shade: 1 }] }]);
    expect(podKind.warnings?.(created(annotated({ [BETA]: text, [ALPHA]: text })))).toEqual(
      [BETA, ALPHA].flatMap((key) => [
        `metadata.annotations[${key}]: deprecated since v1.6; use "spec.initContainers" instead`,
        `metadata.annotations[${key}]: unknown field "[0].colour"`,
        `metadata.annotations[${key}]: unknown field "[0].env[0].shade"`,
      ]),
    );
    expect(podKind.warnings?.(created(podOf()))).toEqual([]);
  });
});

describe('on a Pod that is there', () => {
  const stored = (annotations: Record<string, string>): Pod => {
    const pod = created(annotated(annotations));
    pod.metadata.resourceVersion = '7';
    return pod;
  };
  const without = (pod: Pod, key: string, value?: string): Pod => {
    const { [key]: _, ...others } = pod.metadata.annotations ?? {};
    const annotations = value === undefined ? others : { ...others, [key]: value };
    return { ...structuredClone(pod), metadata: { ...pod.metadata, annotations } };
  };

  describe.each([
    ['update', (pod: Pod, old: Pod) => podKind.validateUpdate(pod, old)],
    ['status write', (pod: Pod, old: Pod) => podKind.subresources['status']?.validate?.(pod, old) ?? []],
  ])('%s', (_, validate) => {
    const texts = (pod: Pod, old: Pod): string[] => validate(pod, old).map(fieldErrorText);

    it.each([BETA, ALPHA])('%s is immutable', (key) => {
      const old = stored({ [key]: json, other: 'x' });
      const path = `metadata.annotations[${key}]`;
      const changed = `${path}: Forbidden: may not remove or update init container annotations`;
      expect(texts(without(old, key, '[]'), old)).toEqual([changed]);
      expect(texts(without(old, key, `${json} `), old)).toEqual([changed]);
      expect(texts(without(old, key), old)).toEqual([changed]);
      expect(texts(without(old, 'other', 'y'), old)).toEqual([]);
    });

    it('is not added later', () => {
      const old = stored({ other: 'x' });
      expect(texts(without(old, BETA, '[]'), old)).toEqual([
        `metadata.annotations[${BETA}]: Forbidden: may not add init container annotations`,
      ]);
    });
  });

  it('an image of an init container may change, though the annotation names the old one', () => {
    const old = stored({ [BETA]: json });
    const pod = structuredClone(old);
    pod.spec?.initContainers?.forEach((container) => {
      container.image = 'busybox:1.36';
    });
    podKind.defaults?.(pod);
    podKind.prepareForUpdate?.(pod, old, NOW);
    expect(podKind.validateUpdate(pod, old)).toEqual([]);
    expect(pod.spec?.initContainers?.map(({ image }) => image)).toEqual(['busybox:1.36', 'busybox:1.36']);
  });

  const statuses: ContainerStatus[] = [
    statusOf('first', { ready: true, state: { terminated: { exitCode: 0 } } }),
    statusOf('second', { state: { running: { startedAt: '2026-01-01T00:00:00Z' } } }),
  ];
  const afterStatus = (old: Pod, initContainerStatuses: ContainerStatus[] | undefined): Pod => {
    const body = { ...structuredClone(old), status: { ...old.status, initContainerStatuses } } as Pod;
    return podKind.subresources['status']?.apply?.(old, body, NOW) as Pod;
  };

  it.each<[string, Record<string, string>, string[]]>([
    ['beta', { [BETA]: json }, [BETA_STATUSES]],
    ['alpha', { [ALPHA]: json }, [ALPHA_STATUSES]],
    ['both', { [ALPHA]: json, [BETA]: json }, [ALPHA_STATUSES, BETA_STATUSES]],
    ['neither', { other: 'x' }, []],
  ])('statuses are mirrored in the form that was used: %s', (_, annotations, keys) => {
    const old = stored(annotations);
    const pod = afterStatus(old, statuses);
    const mirrored = Object.fromEntries(keys.map((key) => [key, JSON.stringify(statuses)]));
    expect(pod.metadata.annotations).toEqual({ ...annotations, ...mirrored });
    expect(podKind.subresources['status']?.validate?.(pod, old)).toEqual([]);
    expect(afterStatus(pod, undefined).metadata.annotations).toEqual(annotations);
  });

  it('a client changes no statuses', () => {
    const old = afterStatus(stored({ [BETA]: json }), statuses);
    const pod = without(old, BETA_STATUSES, 'lies');
    podKind.prepareForUpdate?.(pod, old, NOW);
    expect(pod.metadata.annotations).toEqual(old.metadata.annotations);
    const lied = afterStatus(without(old, BETA_STATUSES, 'lies'), statuses);
    expect(lied.metadata.annotations).toEqual(old.metadata.annotations);
  });
});

describe('defer containers in an annotation', () => {
  const KEY = 'pod.alpha.kubernetes.io/defer-containers';
  const STATUSES = 'pod.alpha.kubernetes.io/defer-container-statuses';
  const PATH = `metadata.annotations[${KEY}]`;
  const entries: DeferContainer[] = [
    { name: 'flush', image: 'busybox:1.28', timeoutSeconds: 5 },
    { name: 'upload', image: 'busybox:1.28', trigger: 'PostExit', restartPolicy: 'OnFailure', timeoutSeconds: 9 },
  ];
  const text = JSON.stringify(entries);
  const withEntries = (annotations: Record<string, string>, deferContainers?: DeferContainer[]): Pod => {
    const pod = annotated(annotations);
    return deferContainers === undefined ? pod : { ...pod, spec: { containers: [], ...pod.spec, deferContainers } };
  };

  it('is read on create where the field is absent', () => {
    const pod = created(withEntries({ [KEY]: text }));
    const defaults = { imagePullPolicy: 'IfNotPresent', terminationMessagePolicy: 'FallbackToLogsOnError' };
    expect(pod.spec?.deferContainers).toMatchObject([
      { ...entries[0], ...defaults, trigger: 'PreExit', restartPolicy: 'Never' },
      { ...entries[1], ...defaults },
    ]);
    expect(pod.spec?.prePullDeferImages).toBe(true);
    expect(pod.metadata.annotations).toEqual({ [KEY]: text });
    expect(podKind.validateCreate(pod)).toEqual([]);
  });

  it.each(['[]', 'null'])('%s says that there are none', (none) => {
    const pod = created(withEntries({ [KEY]: none }));
    expect(pod.spec).not.toHaveProperty('deferContainers');
    expect(podKind.validateCreate(pod)).toEqual([]);
  });

  it.each<[string, string, RegExp]>([
    ['no JSON', "[{'name': 'a'}]", /Expected property name/],
    ['half of it', text.slice(0, 20), /Unterminated string in JSON/],
    ['an object', '{}', /json: cannot unmarshal object into Go struct field/],
    ['a wrong type', '[{"timeoutSeconds": "5"}]', /json: cannot unmarshal string into Go .* of type int32/],
  ])('bad JSON is a validation error: %s', (_, bad, message) => {
    const [error = '', ...others] = errorsOf(withEntries({ [KEY]: bad }));
    expect(others).toEqual([]);
    expect(error.startsWith(`${PATH}: Invalid value: `)).toBe(true);
    expect(error).toMatch(message);
  });

  it('an entry that is not valid is an error of the field that it was read into', () => {
    expect(errorsOf(withEntries({ [KEY]: '[{"name": "app", "image": "x", "timeoutSeconds": 0}]' }))).toEqual([
      'spec.deferContainers[0].name: Duplicate value: "app"',
      'spec.deferContainers[0].timeoutSeconds: Invalid value: 0: must be greater than 0',
    ]);
  });

  it('both forms with the same entries are fine', () => {
    expect(errorsOf(withEntries({ [KEY]: text }, entries))).toEqual([]);
    const [first, second] = entries as [DeferContainer, DeferContainer];
    expect(errorsOf(withEntries({ [KEY]: text }, [{ ...first, trigger: 'PreExit', resources: {} }, second]))).toEqual(
      [],
    );
  });

  it.each<[string, string, DeferContainer[]]>([
    ['fewer in the field', text, entries.slice(0, 1)],
    ['fewer in the annotation', '[]', entries],
    ['another trigger', text, entries.map((entry) => ({ ...entry, trigger: 'PostExit' }))],
  ])('both forms that differ are a validation error: %s', (_, given, field) => {
    expect(errorsOf(withEntries({ [KEY]: given }, field))).toEqual([
      `${PATH}: Invalid value: ${JSON.stringify(given)}: must be equal to spec.deferContainers where both are given`,
    ]);
  });

  it('warns of unknown fields, not of the form: it is the way for typed clients', () => {
    const unknown = JSON.stringify([{ ...entries[0], colour: 'red' }]);
    expect(podKind.warnings?.(created(withEntries({ [KEY]: unknown })))).toEqual([
      `${PATH}: unknown field "[0].colour"`,
    ]);
    expect(podKind.warnings?.(created(withEntries({ [KEY]: text })))).toEqual([]);
  });

  const stored = (pod: Pod): Pod => {
    const result = created(pod);
    result.metadata.resourceVersion = '7';
    return result;
  };
  const reannotated = (pod: Pod, annotations: Record<string, string>): Pod => ({
    ...structuredClone(pod),
    metadata: { ...pod.metadata, annotations },
  });

  describe.each([
    ['update', (pod: Pod, old: Pod) => podKind.validateUpdate(pod, old)],
    ['status write', (pod: Pod, old: Pod) => podKind.subresources['status']?.validate?.(pod, old) ?? []],
  ])('%s', (_, validate) => {
    it('is immutable on an existing Pod', () => {
      const old = stored(withEntries({ [KEY]: text }));
      const changed = [`${PATH}: Forbidden: may not remove or update defer container annotations`];
      for (const annotations of [{ [KEY]: '[]' }, { [KEY]: `${text} ` }, { other: 'x' }] as Record<string, string>[]) {
        expect(validate(reannotated(old, annotations), old).map(fieldErrorText)).toEqual(changed);
      }
      const without = stored(withEntries({}));
      expect(validate(reannotated(without, { [KEY]: '[]' }), without).map(fieldErrorText)).toEqual([
        `${PATH}: Forbidden: may not add defer container annotations`,
      ]);
    });
  });

  it('the statuses are mirrored', () => {
    const old = stored(withEntries({ [KEY]: text, other: 'x' }));
    const deferContainerStatuses = [statusOf('flush', { state: { waiting: { reason: 'PodRunning' } } })];
    const write = (of: Pod): Pod =>
      podKind.subresources['status']?.apply?.(of, { ...of, status: { deferContainerStatuses } } as Pod, NOW) as Pod;
    const mirrored = { [KEY]: text, other: 'x', [STATUSES]: JSON.stringify(deferContainerStatuses) };
    expect(write(old).metadata.annotations).toEqual(mirrored);
    expect(write(reannotated(old, { ...mirrored, [STATUSES]: 'lies' })).metadata.annotations).toEqual(mirrored);
    expect(write(stored(withEntries({ other: 'x' }, entries))).metadata.annotations).toEqual({ other: 'x' });
  });

  it('a client sets no statuses', () => {
    expect(created(withEntries({ [KEY]: text, [STATUSES]: '[]' })).metadata.annotations).toEqual({ [KEY]: text });
  });
});

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

/** A Pod without defaults, as a client sends it. */
const annotated = (annotations: Record<string, string>, initContainers?: Container[]): Pod => {
  const pod = podOf({ initContainers });
  return { ...pod, metadata: { ...pod.metadata, annotations } };
};
/** Sets the defaults and prepares the Pod, as the API server does before it validates a new Pod. */
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

describe('init containers in an annotation on create', () => {
  it.each<[string, Record<string, string>]>([
    ['the beta form', { [BETA]: json }],
    ['the alpha form', { [ALPHA]: json }],
    ['both forms', { [BETA]: json, [ALPHA]: json }],
    ['whitespace and line breaks', { [BETA]: `\n${JSON.stringify([first, second], undefined, 4)}\n ` }],
    ['field names in another case', { [BETA]: json.replaceAll('"name"', '"Name"').replaceAll('"image"', '"IMAGE"') }],
    ['unknown fields', { [BETA]: JSON.stringify([{ ...first, colour: 'red' }, second]) }],
  ])('the annotation with init containers sets spec.initContainers, with defaults: %s', (_, annotations) => {
    const pod = created(annotated(annotations));
    expect(pod.spec?.initContainers).toMatchObject([
      { ...first, imagePullPolicy: 'IfNotPresent', terminationMessagePath: '/dev/termination-log' },
      { ...second, imagePullPolicy: 'IfNotPresent' },
    ]);
    expect(podKind.validateCreate(pod)).toEqual([]);
    expect(pod.metadata.annotations).toEqual(annotations);
  });

  it.each(['[]', 'null'])('an annotation with init containers of %s means no init containers', (text) => {
    expect(created(annotated({ [BETA]: text })).spec?.initContainers).toBeUndefined();
    expect(errorsOf(annotated({ [BETA]: text }))).toEqual([]);
  });

  it.each<[string, string, RegExp]>([
    ['malformed JSON', "[{'name': 'a'}]", /Invalid value: "\[\{'name': 'a'\}\]": Expected property name/],
    ['an empty text', '', /Invalid value: "": Unexpected end of JSON input/],
    ['truncated JSON', json.slice(0, 20), /Invalid value: .*: Unterminated string in JSON/],
    ['an object', '{}', /Invalid value: "\{\}": json: cannot unmarshal object into Go struct field/],
    ['a list of strings', '["a"]', /Invalid value: .*: json: cannot unmarshal string into Go/],
    ['a wrong type', '[{"name": 1}]', /Invalid value: .*: json: cannot unmarshal number into Go .* of type string/],
  ])('an annotation with init containers that is %s is an error at the annotation', (_, text, message) => {
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
  ])('JSON nested too deeply in an annotation with init containers is an error: %s', (_, open, close) => {
    const deep = `${open.repeat(10_000)}0${close.repeat(10_000)}`;
    for (const key of [BETA, ALPHA]) {
      const text = `[{"name":"a","image":"b","resources":{"limits":{"cpu":${deep}}}}]`;
      const [error = '', ...others] = errorsOf(annotated({ [key]: text }));
      expect(others).toEqual([]);
      expect(error.startsWith(`metadata.annotations[${key}]: Invalid value`)).toBe(true);
      expect(error.endsWith(': exceeded max depth')).toBe(true);
    }
  });

  it('an annotation longer than the limit for all annotations is not parsed', () => {
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

  it('the time to find unknown fields in an annotation is linear', () => {
    const fields = Array.from({ length: 10_000 }, (_, index) => `"A${index}":0`);
    const pod = annotated({ [BETA]: `[{"name":"a","image":"b",${fields.join()}}]` });
    const lowerCase = vi.spyOn(String.prototype, 'toLowerCase');
    created(pod);
    const times = lowerCase.mock.calls.length;
    lowerCase.mockRestore();
    // toLowerCase() is called once per field, and a few times for other texts.
    expect(times).toBeLessThan(20_000);
  });

  it('an invalid init container in the annotation is an error of spec.initContainers', () => {
    expect(errorsOf(annotated({ [BETA]: '[{"name": "Not_valid", "image": "x"}]' }))).toEqual([
      expect.stringMatching(/^spec\.initContainers\[0\]\.name: Invalid value: "Not_valid"/),
    ]);
    expect(errorsOf(annotated({ [BETA]: '[{"name": "app", "image": "x"}]' }))).toEqual([
      'spec.initContainers[0].name: Duplicate value: "app"',
    ]);
  });

  it.each<[string, Record<string, string>, Container[]]>([
    ['as sent by the client', { [BETA]: json }, [first, second]],
    [
      'with their defaults and the token of the ServiceAccount',
      { [ALPHA]: json },
      [
        { ...first, volumeMounts: [{ name: 'kube-api-access-x7f2q', mountPath: '/var/run/secrets' }] },
        { ...second, imagePullPolicy: 'IfNotPresent', resources: {} },
      ],
    ],
  ])(
    'the field is used if annotation and field contain equal init containers: %s',
    (_, annotations, initContainers) => {
      const pod = annotated(annotations, initContainers);
      pod.spec = { ...(pod.spec ?? { containers: [] }), volumes: [{ name: 'kube-api-access-x7f2q', emptyDir: {} }] };
      expect(errorsOf(pod)).toEqual([]);
      expect(created(pod).spec?.initContainers).toMatchObject(initContainers);
    },
  );

  it.each<[string, Record<string, string>, Container[] | undefined, string]>([
    ['a field with different containers', { [BETA]: json }, [first], BETA],
    ['an empty annotation and a field', { [ALPHA]: '[]' }, [first], ALPHA],
    ['alpha and beta annotations that differ', { [BETA]: json, [ALPHA]: JSON.stringify([first]) }, undefined, ALPHA],
  ])('init containers given twice in different ways are an error: %s', (_, annotations, initContainers, key) => {
    expect(errorsOf(annotated(annotations, initContainers))).toEqual([
      `metadata.annotations[${key}]: Invalid value: ${JSON.stringify(annotations[key])}: must be equal to spec.initContainers if both are set`,
    ]);
  });

  it('the beta annotation is used if alpha and beta annotation differ', () => {
    expect(initNames(annotated({ [ALPHA]: '[{"name": "old", "image": "x"}]', [BETA]: json }))).toEqual([
      'first',
      'second',
    ]);
  });

  it('clients cannot set the annotations with statuses of init containers', () => {
    const pod = created(annotated({ [BETA]: json, [BETA_STATUSES]: '[]', [ALPHA_STATUSES]: '[]', other: 'x' }));
    expect(pod.metadata.annotations).toEqual({ [BETA]: json, other: 'x' });
  });

  it('an annotation with init containers causes warnings about its form and its unknown fields', () => {
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

describe('init containers in an annotation of an existing Pod', () => {
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
  ])('%s of a Pod with containers in an annotation', (_, validate) => {
    const texts = (pod: Pod, old: Pod): string[] => validate(pod, old).map(fieldErrorText);

    it.each([BETA, ALPHA])('the annotation %s is immutable', (key) => {
      const old = stored({ [key]: json, other: 'x' });
      const path = `metadata.annotations[${key}]`;
      const changed = `${path}: Forbidden: may not remove or update init container annotations`;
      expect(texts(without(old, key, '[]'), old)).toEqual([changed]);
      expect(texts(without(old, key, `${json} `), old)).toEqual([changed]);
      expect(texts(without(old, key), old)).toEqual([changed]);
      expect(texts(without(old, 'other', 'y'), old)).toEqual([]);
    });

    it('an annotation with init containers cannot be added to an existing Pod', () => {
      const old = stored({ other: 'x' });
      expect(texts(without(old, BETA, '[]'), old)).toEqual([
        `metadata.annotations[${BETA}]: Forbidden: may not add init container annotations`,
      ]);
    });
  });

  it('the image of an init container may change although the annotation contains the old one', () => {
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
    ['the beta form', { [BETA]: json }, [BETA_STATUSES]],
    ['the alpha form', { [ALPHA]: json }, [ALPHA_STATUSES]],
    ['both forms', { [ALPHA]: json, [BETA]: json }, [ALPHA_STATUSES, BETA_STATUSES]],
    ['neither form', { other: 'x' }, []],
  ])(
    'statuses of init containers are mirrored into the annotations of the form in which the Pod was created: %s',
    (_, annotations, keys) => {
      const old = stored(annotations);
      const pod = afterStatus(old, statuses);
      const mirrored = Object.fromEntries(keys.map((key) => [key, JSON.stringify(statuses)]));
      expect(pod.metadata.annotations).toEqual({ ...annotations, ...mirrored });
      expect(podKind.subresources['status']?.validate?.(pod, old)).toEqual([]);
      expect(afterStatus(pod, undefined).metadata.annotations).toEqual(annotations);
    },
  );

  it('clients cannot change the annotations with statuses of init containers', () => {
    const old = afterStatus(stored({ [BETA]: json }), statuses);
    const pod = without(old, BETA_STATUSES, 'forged');
    podKind.prepareForUpdate?.(pod, old, NOW);
    expect(pod.metadata.annotations).toEqual(old.metadata.annotations);
    const written = afterStatus(without(old, BETA_STATUSES, 'forged'), statuses);
    expect(written.metadata.annotations).toEqual(old.metadata.annotations);
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

  it('the annotation with defer containers sets the absent field on create', () => {
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

  it.each(['[]', 'null'])('an annotation with defer containers of %s means no defer containers', (none) => {
    const pod = created(withEntries({ [KEY]: none }));
    expect(pod.spec).not.toHaveProperty('deferContainers');
    expect(podKind.validateCreate(pod)).toEqual([]);
  });

  it.each<[string, string, RegExp]>([
    ['malformed JSON', "[{'name': 'a'}]", /Expected property name/],
    ['truncated JSON', text.slice(0, 20), /Unterminated string in JSON/],
    ['an object', '{}', /json: cannot unmarshal object into Go struct field/],
    ['a wrong type', '[{"timeoutSeconds": "5"}]', /json: cannot unmarshal string into Go .* of type int32/],
  ])('an annotation with defer containers that cannot be decoded is a validation error: %s', (_, bad, message) => {
    const [error = '', ...others] = errorsOf(withEntries({ [KEY]: bad }));
    expect(others).toEqual([]);
    expect(error.startsWith(`${PATH}: Invalid value: `)).toBe(true);
    expect(error).toMatch(message);
  });

  it('an invalid entry in the annotation is an error of spec.deferContainers', () => {
    expect(errorsOf(withEntries({ [KEY]: '[{"name": "app", "image": "x", "timeoutSeconds": 0}]' }))).toEqual([
      'spec.deferContainers[0].name: Duplicate value: "app"',
      'spec.deferContainers[0].timeoutSeconds: Invalid value: 0: must be greater than 0',
    ]);
  });

  it('annotation and field may contain the same entries', () => {
    expect(errorsOf(withEntries({ [KEY]: text }, entries))).toEqual([]);
    const [first, second] = entries as [DeferContainer, DeferContainer];
    expect(errorsOf(withEntries({ [KEY]: text }, [{ ...first, trigger: 'PreExit', resources: {} }, second]))).toEqual(
      [],
    );
  });

  it.each<[string, string, DeferContainer[]]>([
    ['fewer entries in the field', text, entries.slice(0, 1)],
    ['fewer entries in the annotation', '[]', entries],
    ['another trigger', text, entries.map((entry) => ({ ...entry, trigger: 'PostExit' }))],
  ])('entries that differ between annotation and field are a validation error: %s', (_, given, field) => {
    expect(errorsOf(withEntries({ [KEY]: given }, field))).toEqual([
      `${PATH}: Invalid value: ${JSON.stringify(given)}: must be equal to spec.deferContainers if both are set`,
    ]);
  });

  it('an annotation with defer containers causes warnings about unknown fields, but not about its form', () => {
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
  ])('%s of a Pod with containers in an annotation', (_, validate) => {
    it('the annotation with defer containers is immutable on an existing Pod', () => {
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

  it('statuses of defer containers are mirrored into an annotation', () => {
    const old = stored(withEntries({ [KEY]: text, other: 'x' }));
    const deferContainerStatuses = [statusOf('flush', { state: { waiting: { reason: 'PodRunning' } } })];
    const write = (of: Pod): Pod =>
      podKind.subresources['status']?.apply?.(of, { ...of, status: { deferContainerStatuses } } as Pod, NOW) as Pod;
    const mirrored = { [KEY]: text, other: 'x', [STATUSES]: JSON.stringify(deferContainerStatuses) };
    expect(write(old).metadata.annotations).toEqual(mirrored);
    expect(write(reannotated(old, { ...mirrored, [STATUSES]: 'forged' })).metadata.annotations).toEqual(mirrored);
    expect(write(stored(withEntries({ other: 'x' }, entries))).metadata.annotations).toEqual({ other: 'x' });
  });

  it('clients cannot set the annotation with statuses of defer containers', () => {
    expect(created(withEntries({ [KEY]: text, [STATUSES]: '[]' })).metadata.annotations).toEqual({ [KEY]: text });
  });
});

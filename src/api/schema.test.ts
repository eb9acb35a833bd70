import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FieldFacts, jsonFields, jsonForms, structOf, typeFacts, typeNames } from './facts/facts.ts';
import { decode, MAX_VALUES } from './schema.ts';

const POD = 'io.k8s.api.core.v1.Pod';

const pod = (spec: unknown, metadata: unknown = { name: 'p' }): Record<string, unknown> => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata,
  spec,
});

describe('decode', () => {
  it('decode() drops null values and unknown fields, and reports the unknown fields', () => {
    const input = pod({
      foo: 1,
      restartPolicy: null,
      containers: [{ name: 'a', bar: {}, env: [{ name: 'X', baz: 1 }], ports: null }, { name: 'b' }],
    });
    const { value, unknownFields, typeErrors } = decode(POD, { ...input, zap: 1, metadata: { name: 'p', '[a': 1 } });
    expect(value).toEqual(pod({ containers: [{ name: 'a', env: [{ name: 'X' }] }, { name: 'b' }] }));
    expect(unknownFields).toEqual([
      'metadata.[a',
      'spec.foo',
      'spec.containers[0].bar',
      'spec.containers[0].env[0].baz',
      'zap',
    ]);
    expect(typeErrors).toEqual([]);
  });

  it('decode() reports fields that were added after v1.33 as unknown', () => {
    const env = [{ name: 'X', valueFrom: { fileKeyRef: { volumeName: 'v' } } }];
    const container = { name: 'a', restartPolicyRules: [], env };
    const { unknownFields } = decode(POD, pod({ hostnameOverride: 'h', schedulingGroup: {}, containers: [container] }));
    expect(unknownFields).toEqual([
      'spec.hostnameOverride',
      'spec.schedulingGroup',
      'spec.containers[0].restartPolicyRules',
      'spec.containers[0].env[0].valueFrom.fileKeyRef',
    ]);
  });

  it.each<[string, unknown, unknown]>([
    [
      'quantities',
      { containers: [], overhead: { cpu: 0.5, memory: '1024Mi' } },
      { containers: [], overhead: { cpu: '500m', memory: '1Gi' } },
    ],
    [
      'quantities in lists of resources, which are rounded to thousandths',
      {
        containers: [{ name: 'a', resources: { limits: { cpu: '0.0001' }, requests: { cpu: '1n' } } }],
        overhead: { cpu: '1e-5', memory: '1.0001Ki' },
        volumes: [{ name: 'v', emptyDir: { sizeLimit: '0.0001' } }],
      },
      {
        containers: [{ name: 'a', resources: { limits: { cpu: '1m' }, requests: { cpu: '1m' } } }],
        overhead: { cpu: '1e-3', memory: '1024103m' },
        volumes: [{ name: 'v', emptyDir: { sizeLimit: '100u' } }],
      },
    ],
    ['fields that Go always encodes', { containers: [{}] }, { containers: [{ name: '' }] }],
    ['a list that Go always encodes', {}, { containers: [] }],
    [
      'null in lists',
      { containers: [{ name: 'a', args: ['x', null] }, null] },
      { containers: [{ name: 'a', args: ['x', ''] }, { name: '' }] },
    ],
    [
      'null in maps',
      { containers: [], nodeSelector: { a: null, __proto__x: 'y' } },
      { containers: [], nodeSelector: { a: '', __proto__x: 'y' } },
    ],
    [
      'an integer or a string',
      { containers: [{ name: 'a', livenessProbe: { httpGet: { port: 'http' }, tcpSocket: { port: 80 } } }] },
      { containers: [{ name: 'a', livenessProbe: { httpGet: { port: 'http' }, tcpSocket: { port: 80 } } }] },
    ],
  ])('decode() converts values as upstream does: %s', (_, spec, expected) => {
    const decoded = decode(POD, pod(spec));
    expect(decoded.value['spec']).toEqual(expected);
    expect(decoded.typeErrors).toEqual([]);
    expect(decoded.unknownFields).toEqual([]);
  });

  it('decode() converts times to UTC', () => {
    const metadata = { creationTimestamp: '2026-01-31T11:30:00.123+02:00', deletionTimestamp: null };
    expect(decode(POD, { metadata }).value).toEqual({ metadata: { creationTimestamp: '2026-01-31T09:30:00Z' } });
    expect(
      decode('io.k8s.api.coordination.v1.Lease', { spec: { renewTime: '2026-01-31T09:30:00.1234567Z' } }).value,
    ).toEqual({
      spec: { renewTime: '2026-01-31T09:30:00.123456Z' },
    });
  });

  it.each<[string, unknown, string]>([
    [
      'integer',
      pod({ activeDeadlineSeconds: 'x' }),
      'json: cannot unmarshal string into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64',
    ],
    [
      'fraction',
      pod({ activeDeadlineSeconds: 1.5 }),
      'json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64',
    ],
    [
      'int32',
      pod({ priority: 2 ** 31 }),
      'json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32',
    ],
    [
      'string in a variable',
      pod({ containers: [{ env: [{ value: 1 }] }] }),
      'json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string',
    ],
    [
      'bool',
      pod({ hostNetwork: 'true' }),
      'json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool',
    ],
    [
      'list',
      pod({ containers: {} }),
      'json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container',
    ],
    [
      'element',
      pod({ containers: ['a'] }),
      'json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type v1.Container',
    ],
    [
      'named string',
      pod({ restartPolicy: true }),
      'json: cannot unmarshal bool into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy',
    ],
    [
      'value of a label',
      pod({}, { labels: { a: 1 } }),
      'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string',
    ],
    [
      'labels',
      pod({}, { labels: [] }),
      'json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string',
    ],
    ['struct', { spec: 'x' }, 'json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec'],
    [
      'quantity',
      pod({ overhead: { cpu: 'x' } }),
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ],
    ['quantity suffix', pod({ overhead: { cpu: '1mi' } }), "unable to parse quantity's suffix"],
    [
      'quantity type',
      pod({ overhead: { cpu: {} } }),
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ],
    [
      'time',
      pod({}, { creationTimestamp: 'now' }),
      'parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"',
    ],
    [
      'incomplete time',
      pod({}, { creationTimestamp: '2026-01-01 00:00' }),
      'parsing time "2026-01-01 00:00" as "2006-01-02T15:04:05Z07:00": cannot parse " 00:00" as "T"',
    ],
    [
      'day',
      pod({}, { creationTimestamp: '2026-02-31T00:00:00Z' }),
      'parsing time "2026-02-31T00:00:00Z": day out of range',
    ],
    [
      'year after 9999 in UTC',
      pod({}, { creationTimestamp: '9999-12-31T23:59:59-23:59' }),
      'parsing time "9999-12-31T23:59:59-23:59": year outside of range [0,9999]',
    ],
    [
      'year before 0 in UTC',
      pod({}, { creationTimestamp: '0000-01-01T00:00:00+00:01' }),
      'parsing time "0000-01-01T00:00:00+00:01": year outside of range [0,9999]',
    ],
    ['time type', pod({}, { creationTimestamp: 1 }), 'json: cannot unmarshal number into Go value of type string'],
    ['root', [], 'json: cannot unmarshal array into Go value of type v1.Pod'],
    [
      'an error of a quantity is reported first',
      pod({ priority: 'x', overhead: { cpu: '1mi' } }),
      "unable to parse quantity's suffix",
    ],
  ])('decode() reports a value of the wrong type: %s', (_, input, message) => {
    expect(decode(POD, input).typeErrors[0]).toBe(message);
  });

  it.each<[unknown, string | undefined]>([
    ['aGk=', undefined],
    ['aG\nk=', undefined],
    ['', undefined],
    ['aGk', 'illegal base64 data at input byte 0'],
    ['aGVsbG8', 'illegal base64 data at input byte 4'],
    ['a!k=', 'illegal base64 data at input byte 1'],
    [1, 'json: cannot unmarshal number into Go struct field Secret.data of type []uint8'],
  ])('decode() accepts only valid base64: %j', (bytes, message) => {
    const { value, typeErrors } = decode('io.k8s.api.core.v1.Secret', { data: { k: bytes } });
    expect(typeErrors[0]).toBe(message);
    if (message === undefined) expect(value).toEqual({ data: { k: String(bytes).replace('\n', '') } });
  });

  it.each<[unknown, string, unknown]>([
    [
      pod({ containers: [{}, { resources: { limits: { cpu: '1', memory: '16Q' } } }] }),
      'spec.containers[1].resources.limits[memory]',
      '16Q',
    ],
    [pod({ volumes: [{ emptyDir: { sizeLimit: 'x' } }] }), 'spec.volumes[0].emptyDir.sizeLimit', 'x'],
    [pod({ overhead: { 'a.b/c': {} } }), 'spec.overhead[a.b/c]', {}],
    [pod({}, { creationTimestamp: 'now' }), 'metadata.creationTimestamp', 'now'],
    [
      pod({ initContainers: [{ livenessProbe: { httpGet: { port: true } } }], overhead: { cpu: 'x' } }),
      'spec.initContainers[0].livenessProbe.httpGet.port',
      true,
    ],
  ])('decode() of %j reports the place and the value of an error without a field: %s, %j', (input, path, value) => {
    expect(decode(POD, input).unnamed).toEqual({ path, value });
  });

  it('decode() reports no place for an error that names its field', () => {
    expect(decode(POD, pod({ priority: 'x' }))).not.toHaveProperty('unnamed');
  });

  it('decode() does not modify prototypes', () => {
    const decoded = decode(POD, JSON.parse('{"__proto__":{"x":1},"metadata":{"labels":{"__proto__":"1"}}}'));
    expect(decoded.unknownFields).toEqual(['__proto__']);
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});

/** `depth`: how many levels of objects may be nested. */
function anyField(field: FieldFacts, depth: number): fc.Arbitrary<unknown> {
  const element = anyElement(field, depth);
  if (field.container === 'list') return fc.array(element, { maxLength: 2 });
  if (field.container === 'map') return fc.dictionary(fc.constantFrom('a', 'b'), element, { maxKeys: 2 });
  return element;
}

function anyObject(type: string, depth: number): fc.Arbitrary<Record<string, unknown>> {
  const fields = depth === 0 ? [] : [...jsonFields(type).values()];
  return fc.record(Object.fromEntries(fields.map((field) => [field.json, anyField(field, depth - 1)])), {
    requiredKeys: [],
  });
}

function anyElement(field: FieldFacts, depth: number): fc.Arbitrary<unknown> {
  const { ref = '', scalar } = field;
  const struct = structOf(field);
  if (struct !== undefined) return anyObject(struct, depth);
  const items = typeFacts(ref)?.items;
  if (items !== undefined) return anyField(items, depth);
  switch (jsonForms.get(ref) ?? scalar) {
    case 'string':
      return fc.string({ maxLength: 3 });
    case 'int32':
    case 'int64':
      return fc.integer();
    case 'double':
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case 'bool':
      return fc.boolean();
    case 'time':
    case 'microTime':
      return fc.constantFrom('2026-01-31T11:30:00+02:00', '2000-02-29T00:00:00.5Z');
    case 'duration':
      return fc.constantFrom('1h', '90s', '-1.5ms');
    case 'bytes':
      return fc.base64String({ maxLength: 8 });
    case 'quantity':
      return fc.constantFrom('1.5Gi', '100m', '1e3', 2, 0.1);
    case 'intOrString':
      return fc.oneof(fc.nat(100), fc.constant('http'));
    default:
      return fc.constant({ 'f:x': {} });
  }
}

it('values of all types decode without errors, and decoding is idempotent', () => {
  for (const typeName of typeNames().filter((name) => typeFacts(name)?.items === undefined)) {
    fc.assert(
      fc.property(anyObject(typeName, 3), (value) => {
        const once = decode(typeName, value);
        expect(once.typeErrors).toEqual([]);
        expect(once.unknownFields).toEqual([]);
        expect(decode(typeName, once.value)).toEqual(once);
      }),
      { numRuns: 4 },
    );
  }
});

it('an object with too many values is rejected, even if the values are small', () => {
  const containers = Array.from({ length: MAX_VALUES }, () => ({}));
  expect(() => decode(POD, { spec: { containers } })).toThrow(
    'Request entity too large: the object has more than 300000 values',
  );
});

it('only the first of many wrong values and unknown fields are reported', () => {
  const args = Array.from({ length: 200_000 }, () => 1);
  const { typeErrors } = decode(POD, { spec: { containers: [{ args }] } });
  expect(typeErrors).toEqual([
    'json: cannot unmarshal number into Go struct field Container.spec.containers.args of type string',
  ]);
  const unknown = Object.fromEntries(Array.from({ length: 200_000 }, (_, index) => [`x${index}`, 1]));
  expect(decode(POD, unknown).unknownFields).toHaveLength(1000);
});

/** Source of the errors: gogo/protobuf. */
import { expect, test } from 'vitest';
import { decodeProtobuf } from './decode.ts';
import { type Field, message, wrapped } from './message-fixture.ts';

const of = (number: number, ...fields: Field[]): Field => [number, fields];

const decode = (body: Uint8Array) => decodeProtobuf(body, () => 'io.k8s.api.core.v1.Pod');
const decodedPod = (...fields: Field[]) => decode(wrapped('v1', 'Pod', fields));
const inMetadata = (...fields: Field[]): Field => of(1, ...fields);
const inSpec = (...fields: Field[]): Field => of(2, ...fields);
const inContainer = (...fields: Field[]): Field => inSpec(of(2, ...fields));

test.each<[field: string, wireType: number, sent: Field]>([
  ['ObjectMeta', 0, [1, 5]],
  ['Name', 0, inMetadata([1, 5])],
  ['Labels', 0, inMetadata([11, true])],
  ['Seconds', 2, inMetadata(of(8, [1, 'now']))],
  ['Containers', 0, inSpec([2, 5])],
  ['VolumeSource', 0, inSpec(of(1, [2, 5]))],
  ['DNSPolicy', 0, inSpec([6, 5])],
  ['HostPID', 2, inSpec([12, 'yes'])],
  ['FSGroup', 2, inSpec(of(14, [5, '5']))],
  ['Command', 0, inContainer([3, 5])],
  ['IntVal', 2, inContainer(of(10, of(1, of(2, of(2, [2, '80'])))))],
  ['String_', 0, inSpec(of(32, [1, 'cpu'], of(2, [1, 5])))],
])('the protobuf decoder refuses the field %s with the wire type %i', (field, wireType, sent) => {
  expect(() => decodedPod(sent)).toThrow(`proto: wrong wireType = ${wireType} for field ${field}`);
});

test('the protobuf decoder refuses an envelope whose fields have an unexpected wire type', () => {
  const body = (...fields: Field[]) => Buffer.concat([Buffer.from('k8s\0'), message(fields)]);
  expect(() => decode(body([2, 5]))).toThrow('proto: wrong wireType = 0 for field Raw');
  expect(() => decode(body(of(1, [2, 5])))).toThrow('proto: wrong wireType = 0 for field Kind');
});

test('the protobuf decoder reads a list of integers whether or not it is packed', () => {
  const withGroups = (...lists: Field[]) => decodedPod(inSpec(of(14, ...lists)));
  const spec = { securityContext: { supplementalGroups: [1, 2, 3] } };
  expect(withGroups([4, 1], [4, 2], [4, 3])).toMatchObject({ spec });
  expect(withGroups([4, new Uint8Array([1, 2])], [4, 3])).toMatchObject({ spec });
});

test('the protobuf decoder merges a message that occurs again: lists grow, maps are merged, and scalars are replaced', () => {
  const label = (key: string, value: string): Field => of(11, [1, key], [2, value]);
  const { metadata, spec } = decodedPod(
    inMetadata([1, 'a'], [3, 'x'], of(8, [1, 1769851800]), label('a', '1'), label('b', '1')),
    inSpec([3, 'Never'], [5, 30], of(14, of(1, [1, 'user']), [2, 1]), of(2, [1, 'one'])),
    inMetadata([1, 'b'], [3, ''], of(8), label('b', '2')),
    inSpec(of(14, of(1, [2, 'role']), [6, 3]), of(2, [1, 'two'])),
  );
  expect(metadata).toStrictEqual({ name: 'b', labels: { a: '1', b: '2' } });
  expect(spec).toStrictEqual({
    restartPolicy: 'Never',
    activeDeadlineSeconds: 30,
    securityContext: { seLinuxOptions: { user: 'user', role: 'role' }, runAsUser: 1, runAsGroup: 3 },
    containers: [{ name: 'one' }, { name: 'two' }],
  });
});

test('the protobuf decoder merges an embedded message that occurs again', () => {
  const { spec } = decodedPod(inSpec(of(1, [1, 'v'], of(2, of(19, [3, 420])), of(2, of(19, of(1, [1, 'one']))))));
  expect(spec).toStrictEqual({ volumes: [{ name: 'v', configMap: { name: 'one', defaultMode: 420 } }] });
});

test.each<[json: unknown, first: Field[], second: Field[]]>([
  [
    'http',
    [
      [1, 1],
      [3, 'http'],
    ],
    [],
  ],
  [
    81,
    [
      [1, 0],
      [2, 80],
    ],
    [[2, 81]],
  ],
  [
    'web',
    [
      [1, 0],
      [2, 80],
    ],
    [
      [1, 1],
      [3, 'web'],
    ],
  ],
])('an IntOrString that occurs again keeps what the second one does not have: %s', (json, first, second) => {
  const { spec } = decodedPod(inContainer(of(10, of(1, of(2, of(2, ...first), of(2, ...second))))));
  expect(spec).toStrictEqual({ containers: [{ livenessProbe: { httpGet: { port: json } } }] });
});

test('a quantity that occurs again is replaced, or kept if the second one is empty', () => {
  const divisor = (...values: Field[]) => decodedPod(inContainer(of(7, of(3, of(2, ...values)))))['spec'];
  const spec = (value: string) => ({
    containers: [{ env: [{ valueFrom: { resourceFieldRef: { divisor: value } } }] }],
  });
  expect(divisor(of(3, [1, '1m']), of(3))).toMatchObject(spec('1m'));
  expect(divisor(of(3, [1, '1m']), of(3, [1, '1']))).toMatchObject(spec('1'));
});

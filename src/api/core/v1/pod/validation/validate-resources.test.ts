import { expect, test, vi } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';

vi.mock('../../../../../machinery/names.ts', { spy: true });
vi.mock('../../../../../machinery/quantity.ts', { spy: true });
// The test files of a worker share modules: without a reset, modules that another test file has loaded would not be mocked.
vi.resetModules();
const { qualifiedNameErrors } = await import('../../../../../machinery/names.ts');
const { parseQuantity } = await import('../../../../../machinery/quantity.ts');
const { containerOf, podOf } = await import('../pod-fixtures.ts');
const { summedLimit } = await import('../resources.ts');
const { qosClass } = await import('../status/qos.ts');
const { validateResourceList, validateResources } = await import('./validate-resources.ts');

const COUNT = 1000;
const many = (): Record<string, string> =>
  Object.fromEntries(Array.from({ length: COUNT }, (_, index) => [`example.com/r${index}`, '5']));

test('a name in limits and requests is validated once, and an equal amount is parsed once', () => {
  vi.clearAllMocks();
  expect(validateResources({ limits: many(), requests: many() }, new Set(), 'resources')).toEqual([]);
  expect(qualifiedNameErrors).toHaveBeenCalledTimes(COUNT);
  expect(parseQuantity).toHaveBeenCalledTimes(COUNT);
});

test('more than 1000 names of resources are an error, and none of them is validated', () => {
  const list = { ...many(), 'a b': 'c' };
  vi.clearAllMocks();
  expect(validateResources({ limits: list, requests: list }, new Set(), 'resources').map(fieldErrorText)).toEqual([
    'resources.limits: Too many: 1001: must have at most 1000 items',
    'resources.requests: Too many: 1001: must have at most 1000 items',
  ]);
  expect(validateResourceList(list, 'overhead').map(fieldErrorText)).toEqual([
    'overhead: Too many: 1001: must have at most 1000 items',
  ]);
  expect(qualifiedNameErrors).not.toHaveBeenCalled();
});

test('huge pages require cpu or memory in limits or requests', () => {
  const hugePages = { 'hugepages-2Mi': '4Mi' };
  const errors = (resources: object) => validateResources(resources, new Set(), 'resources').map(fieldErrorText);
  expect(errors({ limits: hugePages, requests: hugePages })).toEqual([
    'resources: Forbidden: HugePages require cpu or memory',
  ]);
  expect(errors({ limits: hugePages, requests: { ...hugePages, cpu: '1' } })).toEqual([]);
  expect(errors({ limits: { ...hugePages, memory: '1Gi' }, requests: hugePages })).toEqual([]);
});

test('the QoS class and a single limit are computed without parsing other resources', () => {
  const resources = { limits: { ...many(), memory: '1Gi' }, requests: many() };
  const pod = podOf({ containers: [containerOf('a', { resources })] });
  vi.clearAllMocks();
  expect(qosClass(pod)).toBe('Burstable');
  expect(summedLimit(pod, 'memory')).toEqual(parseQuantity('1Gi'));
  expect(vi.mocked(parseQuantity).mock.calls.length).toBeLessThan(5);
});

test.each([
  [244, []],
  [245, [expect.stringContaining("doesn't follow extended resource name standard")]],
])(
  'the name of an extended resource must be short enough for its quota: a prefix of %i characters',
  (length, expected) => {
    const limits = { [`${'a'.repeat(length)}/r`]: '1' };
    expect(validateResources({ limits }, new Set(), 'resources').map(fieldErrorText)).toEqual(expected);
  },
);

test('an invalid name of a resource is an error in limits and in requests', () => {
  const wrong = { 'a b': '1' };
  const errors = validateResources({ limits: wrong, requests: wrong }, new Set(), 'resources');
  expect(errors.map(({ field }) => field)).toEqual(['resources.limits[a b]', 'resources.requests[a b]']);
});

const amountErrors = (resources: object) =>
  validateResources(resources, new Set(['gpu']), 'resources').map(fieldErrorText);
const QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

test.each<[string, object, string[]]>([
  ['a fraction of a CPU', { limits: { cpu: '100m' } }, []],
  ['an amount of 0', { limits: { cpu: '0', 'example.com/x': '0' } }, []],
  [
    'a fraction of an extended resource',
    { limits: { 'example.com/x': '1500m' } },
    ['resources.limits[example.com/x]: Invalid value: "1500m": must be an integer'],
  ],
  [
    'a fraction of a resource of Kubernetes with a prefix',
    { limits: { 'x.kubernetes.io/y': '1500m' }, requests: { 'x.kubernetes.io/y': '500m' } },
    [],
  ],
  [
    'a negative amount',
    { limits: { memory: '-1' } },
    ['resources.limits[memory]: Invalid value: "-1": must be greater than or equal to 0'],
  ],
  [
    'an amount that is not a quantity',
    { limits: { cpu: 'x' }, requests: { cpu: '1' } },
    [`resources.limits[cpu]: Invalid value: "x": ${QUANTITY}`],
  ],
  [
    'a request that is not a quantity',
    { limits: { cpu: '1' }, requests: { cpu: 'x', 'example.com/x': 'y' } },
    [
      `resources.requests[cpu]: Invalid value: "x": ${QUANTITY}`,
      `resources.requests[example.com/x]: Invalid value: "y": ${QUANTITY}`,
    ],
  ],
  [
    'an unknown resource without a prefix',
    { requests: { colour: '1' } },
    ['resources.requests[colour]: Invalid value: "colour": must be a standard resource for containers'],
  ],
  [
    'a request above the limit',
    { limits: { cpu: '1' }, requests: { cpu: '1001m' } },
    ['resources.requests: Invalid value: "1001m": must be less than or equal to cpu limit of 1'],
  ],
  ['a request equal to the limit in another unit', { limits: { cpu: '1' }, requests: { cpu: '1000m' } }, []],
  ['a request below the limit', { limits: { cpu: '1' }, requests: { cpu: '1m' } }, []],
  [
    'an extended resource without a limit',
    { requests: { 'example.com/x': '1' } },
    ['resources.limits: Required value: Limit must be set for non overcommitable resources'],
  ],
  [
    'an extended resource whose request is below the limit',
    { limits: { 'example.com/x': '2' }, requests: { 'example.com/x': '1' } },
    ['resources.requests: Invalid value: "1": must be equal to example.com/x limit of 2'],
  ],
  [
    'an extended resource whose request equals the limit in another unit',
    { limits: { 'example.com/x': '1k' }, requests: { 'example.com/x': '1000' } },
    [],
  ],
  [
    'an amount of huge pages that is not a multiple of the page size',
    { limits: { 'hugepages-2Mi': '3Mi', cpu: '1' } },
    ['resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi'],
  ],
  [
    'huge pages of a size of 0',
    { limits: { 'hugepages-0': '0', cpu: '1' } },
    ['resources.limits[hugepages-0]: Invalid value: "0": 0 is not positive integer multiple of hugepages-0'],
  ],
  [
    'claims without a name, unknown, and twice',
    { claims: [{ name: '' }, { name: 'other' }, { name: 'gpu' }, { name: 'gpu' }, { name: 'gpu', request: 'r' }] },
    [
      'resources.claims[0].name: Required value',
      'resources.claims[1]: Not found: "other"',
      'resources.claims[3]: Duplicate value: "gpu"',
    ],
  ],
])('the errors of resources with %s are reported', (_, resources, expected) => {
  expect(amountErrors(resources)).toEqual(expected);
});

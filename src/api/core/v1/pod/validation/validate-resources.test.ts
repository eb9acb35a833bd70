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

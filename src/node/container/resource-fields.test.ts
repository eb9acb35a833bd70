import { expect, test } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import { type DownwardFacts, resourceFieldValue } from './downward.ts';

const facts: DownwardFacts = { nodeName: 'n', hostIps: [], podIps: [], allocatable: { cpu: '2', memory: '1Gi' } };
const self = containerOf('app', {
  resources: {
    requests: { cpu: '250m', memory: '5Mi' },
    limits: { cpu: '1500m', memory: '0', 'hugepages-2Mi': '4Mi' },
  },
});
const pod = podOf({ containers: [self, containerOf('broken', { resources: { limits: { cpu: 'many' } } })] });
const shown = (resource: string, more: { containerName?: string; divisor?: string } = {}, own = true): string =>
  resourceFieldValue({ resource, ...more }, pod, own ? self : undefined, facts);

test.each<[string, string | undefined, string]>([
  ['requests.cpu', undefined, '1'],
  ['requests.cpu', '1m', '250'],
  ['limits.cpu', undefined, '2'],
  ['limits.cpu', '500m', '3'],
  ['limits.cpu', '0', '2'],
  ['requests.memory', undefined, String(5 * 2 ** 20)],
  ['requests.memory', '1Mi', '5'],
  ['requests.memory', '2Mi', '3'],
  ['limits.memory', '1Mi', '1024'],
  ['limits.hugepages-2Mi', '1Mi', '4'],
  ['limits.hugepages-1Gi', undefined, '0'],
  ['requests.ephemeral-storage', undefined, '0'],
])('the resource %s with the divisor %s is shown as %s', (resource, divisor, text) => {
  const more = divisor === undefined ? {} : { divisor };
  expect(shown(resource, more)).toBe(text);
  expect(shown(resource, { ...more, containerName: '' })).toBe(text);
  expect(shown(resource, { ...more, containerName: 'app' }, false)).toBe(text);
});

test.each(['cpu', 'limits', 'limits.', 'limits.gpu', 'sizes.cpu'])('the resource "%s" is not supported', (resource) => {
  expect(() => shown(resource)).toThrow(`unsupported container resource : ${resource}`);
});

test('a resource of a missing container and an invalid quantity are refused', () => {
  expect(() => shown('limits.cpu', { containerName: 'gone' })).toThrow('container gone not found');
  expect(() => shown('limits.cpu', {}, false)).toThrow('container  not found');
  expect(() => shown('limits.cpu', { containerName: 'broken' })).toThrow('invalid quantity for limits.cpu');
  expect(() => shown('limits.cpu', { divisor: 'half' })).toThrow('invalid quantity for limits.cpu');
});

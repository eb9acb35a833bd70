import { expect, it, test } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { serviceCidrKind } from './index.ts';

const MANY = 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64';

test.each<[string, string[], string[]]>([
  ['one range', ['10.0.0.0/8'], []],
  ['two families', ['fd00::/112', '10.0.0.0/8'], []],
  ['no range', [], ['spec.cidrs: Required value: at least one CIDR required']],
  [
    'three ranges',
    ['a', 'b', 'c'],
    ['spec.cidrs: Invalid value: {"CIDRs":["a","b","c"]}: may only hold up to 2 values'],
  ],
  ['one family', ['10.0.0.0/8', '11.0.0.0/8'], [`spec.cidrs: Invalid value: ["10.0.0.0/8","11.0.0.0/8"]: ${MANY}`]],
  [
    'invalid ranges',
    ['x', '10.0.0.1/8'],
    [
      'spec.cidrs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
      'spec.cidrs[1]: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length',
    ],
  ],
  [
    'a range that is not canonical',
    ['FD00::/64'],
    ['spec.cidrs[0]: Invalid value: "FD00::/64": must be in canonical form ("fd00::/64")'],
  ],
])('the errors of a ServiceCIDR with %s', (_, cidrs, errors) => {
  expect(created(serviceCidrKind, { spec: { cidrs } }).errors).toEqual(errors);
});

test.each<[string, string[], string[], string[]]>([
  ['nothing', ['10.0.0.0/8'], ['10.0.0.0/8'], []],
  ['a range', ['10.0.0.0/8'], ['11.0.0.0/8'], ['spec.cidrs[0]: Invalid value: "11.0.0.0/8": field is immutable']],
  ['the second family', ['10.0.0.0/8'], ['10.0.0.0/8', 'fd00::/64'], []],
  [
    'the same family again',
    ['10.0.0.0/8'],
    ['10.0.0.0/8', '11.0.0.0/8'],
    [`spec.cidrs: Invalid value: ["10.0.0.0/8","11.0.0.0/8"]: ${MANY}`],
  ],
  [
    'the first of two',
    ['10.0.0.0/8'],
    ['fd00::/64', '10.0.0.0/8'],
    ['spec.cidrs[0]: Invalid value: "fd00::/64": field is immutable'],
  ],
  [
    'fewer ranges',
    ['10.0.0.0/8', 'fd00::/64'],
    ['10.0.0.0/8'],
    ['spec.cidrs: Invalid value: ["10.0.0.0/8"]: field is immutable'],
  ],
])('an update of a ServiceCIDR that changes %s', (_, from, to, errors) => {
  expect(updated(serviceCidrKind, { spec: { cidrs: from } }, { spec: { cidrs: to } }).errors).toEqual(errors);
});

it('only the subresource changes the status of a ServiceCIDR', () => {
  const spec = { cidrs: ['10.0.0.0/8'] };
  const status = {
    conditions: [
      { type: 'Ready', status: 'True', reason: '', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
  };
  expect(created(serviceCidrKind, { spec, status }).object.status).toEqual({});
  expect(updated(serviceCidrKind, { spec }, { spec, status }).object.status).toEqual({});
});

it('the table of ServiceCIDRs shows the ranges', () => {
  expect(headings(serviceCidrKind).all).toBe('NAME | CIDRS | AGE');
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  expect(row(serviceCidrKind, { metadata, spec: { cidrs: ['10.0.0.0/8', 'fd00::/64'] } })).toEqual([
    'a',
    '10.0.0.0/8,fd00::/64',
    '60s',
  ]);
});

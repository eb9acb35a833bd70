import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { PodDNSConfig, PodSpec } from '../../../../generated/types.ts';
import { defaulted, podOf } from '../pod-fixtures.ts';
import { validatePodCreate } from './validation.ts';

const errorsOf = (spec: Partial<PodSpec>): string[] => validatePodCreate(defaulted(podOf(spec))).map(fieldErrorText);
const times = (count: number, text: string): string[] => Array.from({ length: count }, () => text);
const LONG = `${'a'.repeat(31)}.${'b'.repeat(31)}`;

describe('DNS settings of a Pod', () => {
  it.each<[string, PodDNSConfig, string[]]>([
    ['three nameservers', { nameservers: times(3, '1.1.1.1') }, []],
    ['four nameservers', { nameservers: times(4, '1.1.1.1') }, ['nameservers: must not have more than 3 nameservers']],
    ['32 search paths of 2047 characters', { searches: times(32, LONG) }, []],
    ['a search list of 2048 characters', { searches: [...times(31, LONG), `${LONG}c`] }, []],
    [
      'a search list of 2049 characters',
      { searches: [...times(31, LONG), `${LONG}cc`] },
      ['searches: must not have more than 2048 characters (including spaces) in the search list'],
    ],
    ['33 search paths', { searches: times(33, 'a') }, ['searches: must not have more than 32 search paths']],
    [
      'a search path that is not valid',
      { searches: ['a', 'b..c'] },
      [expect.stringMatching(/^searches\[1\]: a lowercase RFC 1123 subdomain must/)],
    ],
    ['a search path of 253 characters', { searches: [`${'a'.repeat(253)}.`] }, []],
    [
      'a search path of 254 characters',
      { searches: ['a'.repeat(254)] },
      ['searches[0]: must be no more than 253 characters'],
    ],
  ])('the errors of a Pod with %s are reported', (_, dnsConfig, expected) => {
    const errors = errorsOf({ dnsConfig }).map((text) =>
      text.replace(/^spec\.dnsConfig\.([^:]*): Invalid value: .*?: (?=must|a lower)/, '$1: '),
    );
    expect(errors).toEqual(expected);
  });
});

it('a Pod with its own user namespace may use no namespace of the host', () => {
  const refused = 'Forbidden: when `pod.Spec.HostUsers` is false';
  const host = { hostNetwork: true, hostPID: true, hostIPC: true };
  expect(errorsOf({ hostUsers: false, ...host })).toEqual([
    `spec.hostNetwork: ${refused}`,
    `spec.HostPID: ${refused}`,
    `spec.HostIPC: ${refused}`,
  ]);
  expect(errorsOf({ hostUsers: true, ...host })).toEqual([]);
});

it('the deadline of a Pod is at least 1 s and fits into 32 bits', () => {
  const of = (activeDeadlineSeconds: number) => errorsOf({ activeDeadlineSeconds }).length;
  expect([of(0), of(1), of(2 ** 31 - 1), of(2 ** 31)]).toEqual([1, 0, 0, 1]);
});

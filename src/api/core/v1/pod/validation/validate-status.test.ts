import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { PodSpec, PodStatus } from '../../../../generated/types.ts';
import { containerOf, defaulted, deferOf, podOf, statusOf } from '../pod-fixtures.ts';
import { validatePodStatusUpdate } from './validate-status.ts';

const errorsOf = (status: PodStatus, old: PodStatus = {}, spec: Partial<PodSpec> = {}): string[] => {
  const pod = defaulted(podOf(spec));
  pod.metadata.resourceVersion = '1';
  return validatePodStatusUpdate({ ...pod, status }, { ...pod, status: old }).map(fieldErrorText);
};
const ONE_EACH = 'may specify no more than one IP for each IP family';
const NOT_AN_IP = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const ips = (...addresses: string[]) => addresses.map((ip) => ({ ip }));

it.each<[string, PodStatus, PodStatus, string[]]>([
  [
    'a condition type that is not a qualified name',
    {
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: '', status: 'True' },
      ],
    },
    {},
    [
      'metadata.conditions[1].Type: Invalid value: "": name part must be non-empty',
      expect.stringMatching(/^metadata.conditions\[1\].Type: Invalid value: "": name part must consist of/),
    ],
  ],
  ['a nominated node', { nominatedNodeName: 'n1' }, {}, []],
  ['an unchanged nominated node', { nominatedNodeName: 'N_1' }, { nominatedNodeName: 'N_1' }, []],
  [
    'a nominated node that is not a subdomain',
    { nominatedNodeName: 'N_1' },
    { nominatedNodeName: 'n1' },
    [expect.stringMatching(/^status.nominatedNodeName: Invalid value: "N_1": a lowercase RFC 1123 subdomain must/)],
  ],
  ['the same QoS class', { qosClass: 'Burstable' }, { qosClass: 'Burstable' }, []],
  [
    'another QoS class',
    { qosClass: 'Burstable' },
    { qosClass: 'BestEffort' },
    ['status.qosClass: Invalid value: "Burstable": field is immutable'],
  ],
  ['an address of each family', { podIPs: ips('10.0.0.1', 'fd00::1') }, {}, []],
  ['an address that is not an IP', { podIPs: ips('x') }, {}, [`status.podIPs[0]: Invalid value: "x": ${NOT_AN_IP}`]],
  [
    'two addresses of one family',
    { podIPs: ips('10.0.0.1', '10.0.0.2') },
    {},
    [`status.podIPs: Invalid value: [{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]: ${ONE_EACH}`],
  ],
  [
    'the same address twice and another one',
    { podIPs: ips('10.0.0.1', 'fd00::1', '10.0.0.1') },
    {},
    [
      `status.podIPs: Invalid value: [{"ip":"10.0.0.1"},{"ip":"fd00::1"},{"ip":"10.0.0.1"}]: ${ONE_EACH}`,
      'status.podIPs[2]: Duplicate value: {"ip":"10.0.0.1"}',
    ],
  ],
  ['the address of the host', { hostIP: '10.0.0.1', hostIPs: ips('10.0.0.1', 'fd00::1') }, {}, []],
  [
    'host addresses that do not start with the address of the host',
    { hostIP: 'fd00::1', hostIPs: ips('10.0.0.1', 'fd00::1') },
    {},
    ['status.hostIPs[0].ip: Invalid value: "10.0.0.1": must be equal to `hostIP`'],
  ],
  [
    'a host address that is not an IP',
    { hostIP: 'x', hostIPs: ips('x') },
    {},
    [`status.hostIPs[0]: Invalid value: "x": ${NOT_AN_IP}`],
  ],
])('an update of the status of a Pod with %s is checked', (_, status, old, expected) => {
  expect(errorsOf(status, old)).toEqual(expected);
});

describe('a terminated container in the status of a Pod', () => {
  type Field = 'containerStatuses' | 'initContainerStatuses' | 'deferContainerStatuses' | 'ephemeralContainerStatuses';
  const spec = (restartPolicy: string): Partial<PodSpec> => ({
    restartPolicy,
    initContainers: [containerOf('i'), containerOf('sidecar', { restartPolicy: 'Always' })],
    deferContainers: [deferOf('d'), deferOf('again', { restartPolicy: 'OnFailure' })],
    ephemeralContainers: [containerOf('e')],
  });
  const revival = (field: Field, name: string, exitCode: number, podPolicy: string): string[] =>
    errorsOf(
      { [field]: [statusOf('other'), statusOf(name, { state: { running: {} } })] },
      { [field]: [statusOf(name, { state: { terminated: { exitCode } } })] },
      spec(podPolicy),
    );
  it.each<[Field, string, number, string, boolean]>([
    ['containerStatuses', 'app', 0, 'Always', true],
    ['containerStatuses', 'app', 1, 'Always', true],
    ['containerStatuses', 'app', 0, 'OnFailure', false],
    ['containerStatuses', 'app', 1, 'OnFailure', true],
    ['containerStatuses', 'app', 1, 'Never', false],
    ['initContainerStatuses', 'i', 1, 'OnFailure', true],
    ['initContainerStatuses', 'i', 0, 'OnFailure', false],
    ['initContainerStatuses', 'i', 1, 'Never', false],
    ['initContainerStatuses', 'sidecar', 0, 'Never', true],
    ['deferContainerStatuses', 'd', 1, 'Always', false],
    ['deferContainerStatuses', 'again', 1, 'Never', true],
    ['deferContainerStatuses', 'again', 0, 'Always', false],
    ['ephemeralContainerStatuses', 'e', 1, 'Always', false],
  ])(
    'a container may run again if its policy allows it: in %s, %s with exit code %i, in a Pod with policy %s: %s',
    (...row) => {
      const [field, name, exitCode, podPolicy, allowed] = row;
      expect(revival(field, name, exitCode, podPolicy)).toEqual(
        allowed ? [] : [`status.${field}[0].state: Forbidden: may not be transitioned to non-terminated state`],
      );
    },
  );
  it('a container that stays terminated or leaves the list is not reported', () => {
    const ended = { containerStatuses: [statusOf('app', { state: { terminated: { exitCode: 1 } } })] };
    expect(errorsOf(ended, ended, spec('Never'))).toEqual([]);
    expect(errorsOf({}, ended, spec('Never'))).toEqual([]);
    const running = { containerStatuses: [statusOf('app', { state: { running: {} } })] };
    expect(errorsOf(running, running, spec('Never'))).toEqual([]);
  });
  it('a container without a state counts as not terminated', () => {
    const ended = { containerStatuses: [statusOf('app', { state: { terminated: { exitCode: 0 } } })] };
    expect(errorsOf({ containerStatuses: [statusOf('app')] }, ended, spec('Never'))).toHaveLength(1);
    expect(errorsOf({ containerStatuses: [statusOf('app', { state: { running: {} } })] }, {}, spec('Never'))).toEqual(
      [],
    );
  });
});

import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { Container, ContainerPort, PodSpec } from '../../../../generated/types.ts';
import { containerOf, defaulted, podOf } from '../pod-fixtures.ts';
import { hostPortsOf, takeHostPorts } from './validate-container-fields.ts';
import { validatePodCreate } from './validation.ts';

const errorsOf = (container: Partial<Container>, spec: Partial<PodSpec> = {}): string[] =>
  validatePodCreate(defaulted(podOf({ ...spec, containers: [containerOf('app', container)] }))).map(fieldErrorText);
const RANGE = 'must be between 1 and 65535, inclusive';

describe('the ports of a container', () => {
  it.each<[string, Partial<ContainerPort>[], ...string[]]>([
    ['different names', [{ name: 'a', containerPort: 1 }, { name: 'b', containerPort: 1 }, { containerPort: 65_535 }]],
    [
      'a repeated name',
      [
        { name: 'a', containerPort: 1 },
        { name: 'a', containerPort: 2 },
      ],
      '[1].name: Duplicate value: "a"',
    ],
    [
      'a repeated invalid name',
      [
        { name: 'a--b', containerPort: 1 },
        { name: 'a--b', containerPort: 2 },
      ],
      '[0].name: Invalid value: "a--b": ',
      '[1].name: Invalid value: "a--b": ',
    ],
    ['no number', [{ name: 'a' }], '[0].containerPort: Required value'],
    ['a number out of range', [{ containerPort: 65_536 }], `[0].containerPort: Invalid value: 65536: ${RANGE}`],
    ['a host port out of range', [{ containerPort: 1, hostPort: -1 }], `[0].hostPort: Invalid value: -1: ${RANGE}`],
    [
      'an unknown protocol',
      [{ containerPort: 1, protocol: 'x' }],
      '[0].protocol: Unsupported value: "x": supported values: "SCTP", "TCP", "UDP"',
    ],
  ])('the errors of ports with %s are reported', (_, ports, ...errors) => {
    expect(errorsOf({ ports: ports as ContainerPort[] })).toEqual(
      errors.map((text) => expect.stringContaining(`spec.containers[0].ports${text}`)),
    );
  });

  const port = (hostPort: number, more: Partial<ContainerPort> = {}): ContainerPort => ({
    containerPort: 1,
    hostPort,
    protocol: 'TCP',
    ...more,
  });
  it('host ports differ in their protocol, address or number', () => {
    const ports = [port(80), port(81), port(80, { protocol: 'UDP' }), port(80, { hostIP: '10.0.0.1' })];
    expect(errorsOf({ ports })).toEqual([]);
    expect([...hostPortsOf([containerOf('a', { ports: [...ports, { containerPort: 5 }] })])]).toEqual([
      'TCP//80',
      'TCP//81',
      'UDP//80',
      'TCP/10.0.0.1/80',
    ]);
  });
  it('a host port is used once in a Pod', () => {
    expect(errorsOf({ ports: [port(80), port(80)] })).toEqual([
      'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"',
    ]);
    const taken = new Set<string>();
    const container = containerOf('a', { ports: [port(80), port(81)] });
    expect(takeHostPorts(container, taken, 'c', new Set(['TCP//81'])).map(fieldErrorText)).toEqual([
      'c.ports[1].hostPort: Duplicate value: "TCP//81"',
    ]);
    expect([...taken]).toEqual(['TCP//80']);
  });
});

describe('the resize policy of a container', () => {
  const at = 'spec.containers[0].resizePolicy';
  const NEVER = "must be 'NotRequired' when `restartPolicy` is 'Never'";
  const policy = (resourceName: string, restartPolicy: string) => ({ resourceName, restartPolicy });
  it.each<[string, object[], Partial<PodSpec>, ...string[]]>([
    ['both resources', [policy('cpu', 'NotRequired'), policy('memory', 'RestartContainer')], {}],
    [
      'a repeated resource',
      [policy('cpu', 'NotRequired'), policy('cpu', 'NotRequired')],
      {},
      `${at}[1]: Duplicate value: "cpu"`,
    ],
    [
      'another resource',
      [policy('disk', 'NotRequired')],
      {},
      `${at}: Unsupported value: "disk": supported values: "cpu", "memory"`,
    ],
    [
      'another policy',
      [policy('cpu', 'x')],
      {},
      `${at}: Unsupported value: "x": supported values: "NotRequired", "RestartContainer"`,
    ],
    [
      'a restart in a Pod that restarts nothing',
      [policy('cpu', 'RestartContainer')],
      { restartPolicy: 'Never' },
      `${at}: Invalid value: "RestartContainer": ${NEVER}`,
    ],
    ['no restart in a Pod that restarts nothing', [policy('cpu', 'NotRequired')], { restartPolicy: 'Never' }],
  ])('the errors of a resize policy with %s are reported', (_, resizePolicy, spec, ...errors) => {
    expect(errorsOf({ resizePolicy } as Partial<Container>, spec)).toEqual(errors);
  });
});

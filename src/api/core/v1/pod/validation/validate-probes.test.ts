import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { LifecycleHandler, Probe } from '../../../../generated/types.ts';
import { validateProbesAndHooks } from './validate-probes.ts';

const SCHEME = 'HTTP';
const exec = { exec: { command: ['true'] } };
const errorsOf = (container: object, gracePeriodSeconds?: number): string[] =>
  validateProbesAndHooks(container, gracePeriodSeconds, 'c').map(fieldErrorText);
const HEADER =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

describe('the handlers of hooks and probes', () => {
  it.each<[string, LifecycleHandler & Pick<Probe, 'grpc'>, ...string[]]>([
    ['a command', exec],
    ['an HTTP request', { httpGet: { path: '/', port: 80, scheme: SCHEME } }],
    [
      'an HTTPS request with headers',
      { httpGet: { path: '/', port: 'web', scheme: 'HTTPS', httpHeaders: [{ name: 'X-A', value: '' }] } },
    ],
    ['a TCP connection', { tcpSocket: { port: 65_535 } }],
    ['a gRPC request', { grpc: { port: 1 } }],
    ['no handler', {}, ': Required value: must specify a handler type'],
    [
      'two handlers',
      { ...exec, tcpSocket: { port: 1 } },
      '.tcpSocket: Forbidden: may not specify more than 1 handler type',
    ],
    ['an empty command', { exec: { command: [] } }, '.exec.command: Required value'],
    [
      'an HTTP request without a path',
      { httpGet: { path: '', port: 80, scheme: SCHEME } },
      '.httpGet.path: Required value',
    ],
    [
      'an HTTP request to a port out of range',
      { httpGet: { path: '/', port: 65_536, scheme: SCHEME } },
      '.httpGet.port: Invalid value: 65536: must be between 1 and 65535, inclusive',
    ],
    [
      'an HTTP request with another scheme',
      { httpGet: { path: '/', port: 80, scheme: 'FTP' } },
      '.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
    ],
    [
      'an HTTP header with a space in its name',
      { httpGet: { path: '/', port: 80, scheme: SCHEME, httpHeaders: [{ name: 'X A', value: '' }] } },
      `.httpGet.httpHeaders: Invalid value: "X A": ${HEADER}`,
    ],
    [
      'a TCP connection to port 0',
      { tcpSocket: { port: 0 } },
      '.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive',
    ],
    [
      'a gRPC request to port 0',
      { grpc: { port: 0 } },
      '.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive',
    ],
  ])('the errors of a handler with %s are reported', (_, handler, ...errors) => {
    expect(errorsOf({ lifecycle: { preStop: handler } })).toEqual(errors.map((text) => `c.lifecycle.preStop${text}`));
    expect(errorsOf({ readinessProbe: handler })).toEqual(errors.map((text) => `c.readinessProbe${text}`));
  });

  it('both hooks of a container are validated', () => {
    expect(errorsOf({ lifecycle: { postStart: {}, preStop: exec } })).toEqual([
      'c.lifecycle.postStart: Required value: must specify a handler type',
    ]);
  });

  const sleep = (seconds: number) => ({ lifecycle: { preStop: { sleep: { seconds } } } });
  const BOUND = 'must be non-negative and less than terminationGracePeriodSeconds (30)';
  it.each([
    [-1, 30, `c.lifecycle.preStop.sleep: Invalid value: -1: ${BOUND}`],
    [0, 30],
    [30, 30],
    [31, 30, `c.lifecycle.preStop.sleep: Invalid value: 31: ${BOUND}`],
    [31, undefined],
  ])('a hook that sleeps %s s in a grace period of %s s is accepted or rejected', (seconds, grace, ...errors) => {
    expect(errorsOf(sleep(seconds), grace)).toEqual(errors);
  });
});

describe('the fields of probes', () => {
  it.each(['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'] as const)(
    'the field %s of a probe must not be negative',
    (field) => {
      expect(errorsOf({ readinessProbe: { ...exec, [field]: 0 } })).toEqual([]);
      expect(errorsOf({ readinessProbe: { ...exec, [field]: -1 } })).toEqual([
        `c.readinessProbe.${field}: Invalid value: -1: must be greater than or equal to 0`,
      ]);
    },
  );

  it.each(['livenessProbe', 'startupProbe'] as const)(
    'a %s has exactly one success and a positive grace period',
    (name) => {
      const errors = (more: Probe): string[] => errorsOf({ [name]: { ...exec, successThreshold: 1, ...more } });
      expect(errors({ terminationGracePeriodSeconds: 1 })).toEqual([]);
      expect(errors({ successThreshold: 2 })).toEqual([`c.${name}.successThreshold: Invalid value: 2: must be 1`]);
      expect(errors({ terminationGracePeriodSeconds: 0 })).toEqual([
        `c.${name}.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0`,
      ]);
    },
  );

  it('a readiness probe may need several successes, and has no grace period', () => {
    expect(errorsOf({ readinessProbe: { ...exec, successThreshold: 2 } })).toEqual([]);
    expect(errorsOf({ readinessProbe: { ...exec, terminationGracePeriodSeconds: 1 } })).toEqual([
      'c.readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes',
    ]);
  });
});

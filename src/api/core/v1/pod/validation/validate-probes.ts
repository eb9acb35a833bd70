/** Validates probes and lifecycle hooks of a container. Source: validation of v1.33 (rules and wording). */
import {
  allErrors,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../../machinery/field-error.ts';
import type { HTTPGetAction, Lifecycle, LifecycleHandler, Probe } from '../../../../generated/types.ts';
import { nonNegative, portErrors, requiredText } from './validate-values.ts';

type Handler = LifecycleHandler & Pick<Probe, 'grpc'>;

/** The names of HTTP headers that upstream allows. RFC 7230 allows more characters. */
const headerName = /^[-A-Za-z0-9]+$/;

const handlerTypes = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const;

function validateHandler(handler: Handler, gracePeriodSeconds: number | undefined, path: string): FieldError[] {
  const given = handlerTypes.filter((type) => handler[type]);
  const [first, ...others] = given;
  if (first === undefined) return [required(path, 'must specify a handler type')];
  return allErrors(
    validateAction(first, handler, gracePeriodSeconds, `${path}.${first}`),
    others.map((type) => forbidden(`${path}.${type}`, 'may not specify more than 1 handler type')),
  );
}

function validateAction(
  type: (typeof handlerTypes)[number],
  handler: Handler,
  gracePeriodSeconds: number | undefined,
  path: string,
): FieldError[] {
  switch (type) {
    case 'exec':
      return (handler.exec?.command ?? []).length === 0 ? [required(`${path}.command`)] : [];
    case 'httpGet':
      return handler.httpGet ? validateHttpGet(handler.httpGet, path) : [];
    case 'tcpSocket':
      return portErrors(handler.tcpSocket?.port, `${path}.port`);
    case 'grpc':
      return portErrors(handler.grpc?.port, `${path}.port`);
    case 'sleep': {
      const seconds = handler.sleep?.seconds ?? 0;
      return gracePeriodSeconds === undefined || (seconds >= 0 && seconds <= gracePeriodSeconds)
        ? []
        : [
            invalid(
              path,
              seconds,
              `must be non-negative and less than terminationGracePeriodSeconds (${gracePeriodSeconds})`,
            ),
          ];
    }
  }
}

const validateHttpGet = (action: HTTPGetAction, path: string): FieldError[] =>
  allErrors(
    requiredText(action.path, `${path}.path`),
    portErrors(action.port, `${path}.port`),
    action.scheme === 'HTTP' || action.scheme === 'HTTPS'
      ? []
      : [notSupported(`${path}.scheme`, action.scheme ?? '', ['HTTP', 'HTTPS'])],
    (action.httpHeaders ?? [])
      .filter((header) => !headerName.test(header.name ?? ''))
      .map((header) =>
        invalid(
          `${path}.httpHeaders`,
          header.name ?? '',
          "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
        ),
      ),
  );

function validateProbe(probe: Probe, gracePeriodSeconds: number | undefined, path: string): FieldError[] {
  const grace = probe.terminationGracePeriodSeconds;
  return allErrors(
    validateHandler(probe, gracePeriodSeconds, path),
    nonNegative(probe.initialDelaySeconds, `${path}.initialDelaySeconds`),
    nonNegative(probe.timeoutSeconds, `${path}.timeoutSeconds`),
    nonNegative(probe.periodSeconds, `${path}.periodSeconds`),
    nonNegative(probe.successThreshold, `${path}.successThreshold`),
    nonNegative(probe.failureThreshold, `${path}.failureThreshold`),
    grace !== undefined && grace <= 0
      ? [invalid(`${path}.terminationGracePeriodSeconds`, grace, 'must be greater than 0')]
      : [],
  );
}

const onceSuccessful = (probe: Probe, path: string): FieldError[] =>
  probe.successThreshold === 1 ? [] : [invalid(`${path}.successThreshold`, probe.successThreshold ?? 0, 'must be 1')];

export function validateProbesAndHooks(
  container: { lifecycle?: Lifecycle; livenessProbe?: Probe; readinessProbe?: Probe; startupProbe?: Probe },
  gracePeriodSeconds: number | undefined,
  path: string,
): FieldError[] {
  const { lifecycle, livenessProbe, readinessProbe, startupProbe } = container;
  const hook = (handler: LifecycleHandler | undefined, name: string): FieldError[] =>
    handler ? validateHandler(handler, gracePeriodSeconds, `${path}.lifecycle.${name}`) : [];
  const restarting = (probe: Probe | undefined, name: string): FieldError[] =>
    probe
      ? allErrors(validateProbe(probe, gracePeriodSeconds, `${path}.${name}`), onceSuccessful(probe, `${path}.${name}`))
      : [];
  const readiness = readinessProbe ? validateProbe(readinessProbe, gracePeriodSeconds, `${path}.readinessProbe`) : [];
  if (readinessProbe?.terminationGracePeriodSeconds !== undefined) {
    readiness.push(
      invalid(
        `${path}.readinessProbe.terminationGracePeriodSeconds`,
        readinessProbe.terminationGracePeriodSeconds,
        'must not be set for readinessProbes',
      ),
    );
  }
  return allErrors(
    hook(lifecycle?.postStart, 'postStart'),
    hook(lifecycle?.preStop, 'preStop'),
    restarting(livenessProbe, 'livenessProbe'),
    readiness,
    restarting(startupProbe, 'startupProbe'),
  );
}

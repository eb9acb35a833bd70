import {
  type Case,
  container,
  explains,
  of,
  READY,
  running,
  status,
  terminated,
  UNREADY,
  waiting,
} from '../explain-fixtures.ts';

const PORTS = [{ name: 'web', containerPort: 80 }, { containerPort: 81 }, { name: 'admin', containerPort: 82 }];
const ERROR = 'strconv.Atoi: parsing "http": invalid syntax';
const HOOK = { httpGet: { port: 'http' } };
const LACK = 'container app has no port named http (it has web and admin)';
const unready = (started: boolean): Case['status'] => ({
  conditions: UNREADY,
  containerStatuses: [running('app', { ready: false, started })],
});
const NAME_PORT = /^name a port of the container in the probe, or give its port this name, and recreate the Pod$/;

explains({
  'a readiness probe with the name of a port that its container does not have': {
    spec: { containers: [container('app', { ports: PORTS, readinessProbe: { httpGet: { port: 'http' } } })] },
    status: unready(true),
    events: [['Unhealthy', `Readiness probe errored and resulted in unknown state: ${ERROR}`, 'app']],
    sentence: `p is not ready: the readiness probe of container app cannot run, because ${LACK}.`,
    evidence: [`Event Unhealthy, 1.00s ago: Readiness probe errored and resulted in unknown state: ${ERROR}`],
    advice: NAME_PORT,
  },
  'a startup probe with the name of a port that its container does not have': {
    spec: { containers: [container('app', { startupProbe: { tcpSocket: { port: 'http' } } })] },
    status: unready(false),
    sentence:
      'p is not ready: the startup probe of container app cannot run, because container app has no port named http (it has no named ports).',
    advice: NAME_PORT,
  },
  'a probe with a text of its own about a number, and the name of a port that its container has': {
    spec: { containers: [container('app', { ports: PORTS, readinessProbe: { httpGet: { port: 'web' } } })] },
    status: unready(true),
    events: [['Unhealthy', `Readiness probe failed: ${ERROR}`, 'app']],
    sentence: `p is not ready: the readiness probe of container app fails, ${ERROR}.`,
  },
  'a ready Pod with a liveness probe that never runs': {
    spec: { containers: [container('app', { ports: PORTS, livenessProbe: { httpGet: { port: 'http' } } })] },
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app')] },
    sentence: 'p is running: its container is ready, for 30.0s.',
    evidence: ['container app: never restarted', `its liveness probe never runs, because ${LACK}`],
    advice: NAME_PORT,
  },
  'a postStart hook with the name of a port that its container does not have': {
    spec: { containers: [container('app', { ports: PORTS, lifecycle: { postStart: HOOK } })] },
    status: { containerStatuses: [waiting('app', 'PostStartHookError', ERROR)] },
    sentence: `p cannot start: the postStart hook of container app failed, because ${LACK}.`,
  },
  'a container that restarts because of such a postStart hook': {
    spec: { containers: [container('app', { ports: PORTS, lifecycle: { postStart: HOOK } })] },
    status: {
      containerStatuses: [waiting('app', 'CrashLoopBackOff', '', { lastState: terminated(0, 'Completed') })],
    },
    steps: [
      [6, 'HookFailed', { ...of('app'), reason: 'postStart', message: ERROR }],
      [5, 'StopSignal', { ...of('app'), message: 'FailedPostStartHook' }],
      [4, 'Exited', { ...of('app'), exitCode: 0 }],
    ],
    sentence: `p keeps restarting: the postStart hook of container app failed, because ${LACK}.`,
  },
  'a preStop hook with the name of a port that its container does not have': {
    spec: { containers: [container('app', { ports: PORTS, lifecycle: { preStop: HOOK } })] },
    status: {
      conditions: UNREADY,
      containerStatuses: [status('app', { state: terminated(1, 'Error') })],
    },
    steps: [[6, 'HookFailed', { ...of('app'), reason: 'preStop', message: ERROR }]],
    sentence: /^p is not ready: container app ended with code 1/,
    evidence: [
      'it ended with code 1 (Error)',
      'restartPolicy is Always',
      `the preStop hook of container app failed 6.00s ago: ${LACK}`,
    ],
  },
});

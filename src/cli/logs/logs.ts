/**
 * `lifepod logs`: like kubectl logs, but for every container of a Pod including defer containers. Without --follow, --all-containers
 * prints the logs in the order init, app, defer, ephemeral. Source: kubectl logs of v1.32 (options and wording; as with the other commands,
 * an error begins with `lifepod:`).
 */

import type { Readable } from 'node:stream';
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import { resourcePath } from '../../client/paths.ts';
import { isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import { errorLine, failureText } from '../failures.ts';
import { containerNames, type PodContainer, podContainers, waitsForItsTurn } from '../pod-containers.ts';
import { printError } from '../progress/standard-output.ts';
import { SIGNAL_CODES } from '../signals.ts';
import { resolveTarget, type Target, type TargetOptions } from '../target.ts';
import { presentPod } from '../workloads/present-pod.ts';
import { copyLog, hasColors, printInTurn } from './copy-log.ts';
import { followPod } from './follow-pod.ts';
import { type LogCommandOptions, type LogRequest, logQuery, logRequest } from './log-options.ts';
import { couldNotStart, logRefusal, neverStarted, noLogs, notScheduled } from './log-refusal.ts';
import { colored, createLines, createTimedLines } from './merged-lines.ts';

const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container';

export type LogsOptions = LogCommandOptions & TargetOptions;

/** Prints logs of the Pod `resource`. `inline`: the container if it is an argument after the Pod, which kubectl also accepts. */
export async function logs(resource: string, inline: string | undefined, options: LogsOptions): Promise<void> {
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => {
      process.exitCode = SIGNAL_CODES[name];
      stopping.abort();
    });
  }
  // An error usually means that the program that reads the output has closed the pipe.
  process.stdout.on('error', () => stopping.abort());
  try {
    if (inline !== undefined && options.container !== undefined) {
      throw new UserError('only one of -c or an inline [CONTAINER] arg is allowed');
    }
    const chosen = { ...options, container: options.container ?? inline };
    const request = logRequest(chosen);
    const target = await resolveTarget(options);
    const pod = await presentPod(target, resource, 'and its logs are deleted');
    await printLogs(pod, chosen, request, target, stopping.signal);
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  }
}

/** Prints the error, after which the command continues and exits with 1. */
function report(error: unknown): void {
  if (!(error instanceof UserError) && !isApiError(error)) throw error;
  printError(errorLine(failureText(error)));
  process.exitCode = 1;
}

async function printLogs(
  pod: Pod,
  options: LogsOptions,
  request: LogRequest,
  target: Target,
  signal: AbortSignal,
): Promise<void> {
  const all = options.allContainers === true;
  const only = all ? undefined : chooseContainer(pod, options.container);
  const source = createSource(pod, options, request, target, signal);
  const follows = request.follow && !request.previous;
  if (follows && (only === undefined || waitsForItsTurn(pod, only) || only.kind === 'defer')) {
    const pods = target.client.resource<Pod>(PODS);
    const ports = { pods, print: source.printTimed, waiting: printWaiting };
    const wasRead = await followPod(pod, only?.name, ports, signal);
    if (!wasRead && only !== undefined && !signal.aborted) {
      throw neverStarted(pod, only, target.hints);
    }
    return;
  }
  if (only !== undefined) {
    if ((pod.spec?.nodeName ?? '') === '') throw notScheduled(pod, only, target.hints);
    return source.print(only);
  }
  const logged = podContainers(pod).filter((container) => hasLog(pod, container, request));
  if (logged.length === 0) throw noLogs(pod, request, target.hints);
  await printInTurn(logged, source.print, report, signal);
}

function printWaiting(containers: readonly PodContainer[]): void {
  const names = containers.map(({ name }) => name).join(', ');
  printError(`Waiting for ${names} to start`);
}

/** Returns whether to request the log. The request for a container that waits for its turn would print an error. */
const hasLog = (pod: Pod, container: PodContainer, { previous }: LogRequest): boolean =>
  previous ? container.status?.lastState?.terminated !== undefined : !waitsForItsTurn(pod, container);

function chooseContainer(pod: Pod, asked: string | undefined): PodContainer {
  const containers = podContainers(pod);
  const find = (name: string): PodContainer | undefined => containers.find((each) => each.name === name);
  if (asked !== undefined) {
    const found = find(asked);
    if (found !== undefined) return found;
    throw new UserError(`container ${asked} is not valid for pod ${pod.metadata.name} out of: ${containerNames(pod)}`);
  }
  const annotated = pod.metadata.annotations?.[DEFAULT_CONTAINER] ?? '';
  if (annotated !== '') {
    const found = find(annotated);
    if (found !== undefined) return found;
    printError(`Default container name ${JSON.stringify(annotated)} not found in pod ${pod.metadata.name}`);
  }
  const first = containers.find(({ kind }) => kind === 'app');
  if (first === undefined) throw new UserError(`pod ${pod.metadata.name} does not have any containers`);
  if (containers.length > 1) {
    printError(`Defaulted container ${JSON.stringify(first.name)} out of: ${containerNames(pod)}`);
  }
  return first;
}

function createSource(pod: Pod, options: LogsOptions, request: LogRequest, target: Target, signal: AbortSignal) {
  const { name, namespace } = pod.metadata;
  const open = (container: string, asked: LogRequest): Promise<Readable> =>
    target.client.open(resourcePath(PODS, namespace, name, 'log') + logQuery(container, asked), signal);
  const isColored = hasColors();
  const order = podContainers(pod).map((container) => container.name);
  const prefixOf = (container: string): string => {
    if (options.prefix === false || (options.prefix !== true && options.allContainers !== true)) return '';
    const text = options.prefix === true ? `[pod/${name}/${container}] ` : `[${container}] `;
    if (!order.includes(container)) order.push(container);
    return isColored ? colored(text, order.indexOf(container)) : text;
  };
  const timed = new Map<string, ReturnType<typeof createTimedLines>>();

  return {
    /**
     * Rejects with the error of logRefusal() if the server refuses the request, or with a UserError if the container could not start or the
     * connection is lost.
     */
    async print(container: PodContainer): Promise<void> {
      const empty = couldNotStart(pod, container, request.previous, target.hints);
      if (empty !== undefined) throw empty;
      const prefix = prefixOf(container.name);
      const body = await open(container.name, request).catch((error: unknown) => {
        throw isApiError(error) ? logRefusal(error, pod, container, target.hints) : error;
      });
      await copyLog(body, prefix === '' ? undefined : createLines(prefix), signal, target.hints);
    },
    async printTimed(container: PodContainer, wasThere: boolean): Promise<void> {
      const { timestamps } = request;
      let lines = timed.get(container.name);
      if (lines === undefined) {
        lines = createTimedLines({ prefix: prefixOf(container.name), timestamps });
        timed.set(container.name, lines);
      }
      const asked = { ...request, timestamps: true, part: wasThere ? request.part : {} };
      try {
        await copyLog(await open(container.name, asked), lines.begin(), signal, target.hints);
      } catch (error) {
        if (signal.aborted) return;
        // An error about the log of one container must not stop the logs of the others.
        if (!isApiError(error)) throw error;
        report(logRefusal(error, pod, container, target.hints));
      }
    },
  };
}

/** A WebSocket takes a small part of the processor time that kubectl takes to start. */
import { parseArgs } from 'node:util';
import { WebSocket } from 'ws';
import { readKubeconfig } from '../../src/client/kubeconfig.ts';
import { resourcePath } from '../../src/client/paths.ts';
import type { Status } from '../../src/machinery/meta.ts';
import type { CommandResult } from '../../src/platform/processes.ts';

const PROTOCOL = 'v5.channel.k8s.io';
const PODS = { group: '', version: 'v1', resource: 'pods' };
const DEADLINE_MILLIS = 120_000;
/** The first byte of each message names its channel. Source: upstream's remote command protocol. */
const [STDOUT, STDERR, ERROR] = [1, 2, 3];

/**
 * Returns a function that takes the arguments of `kubectl exec` (`POD -- COMMAND…`, -c, -n). If the command cannot start, the exit code is
 * 1, and `stderr` says why.
 */
export const containerRunner =
  (kubeconfig: string) =>
  async (...args: string[]): Promise<CommandResult> => {
    const separator = args.indexOf('--');
    const { values, positionals } = parseArgs({
      args: args.slice(0, separator),
      allowPositionals: true,
      options: { container: { type: 'string', short: 'c' }, namespace: { type: 'string', short: 'n' } },
    });
    const { server, caPem, certPem, keyPem, token, namespace: own = 'default' } = await readKubeconfig(kubeconfig);
    const query = new URLSearchParams({ stdout: 'true', stderr: 'true' });
    if (values.container !== undefined) query.set('container', values.container);
    for (const word of args.slice(separator + 1)) query.append('command', word);
    const path = resourcePath(PODS, values.namespace ?? own, positionals[0], 'exec');
    const socket = new WebSocket(`${server}${path}?${query}`, [PROTOCOL], {
      ca: caPem,
      cert: certPem,
      key: keyPem,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      handshakeTimeout: DEADLINE_MILLIS,
    });
    return resultOf(socket, args);
  };

function resultOf(socket: WebSocket, args: readonly string[]): Promise<CommandResult> {
  const channels: Buffer[][] = [[], [], [], []];
  const text = (channel: number): string => Buffer.concat(channels[channel] ?? []).toString();
  return new Promise((resolve, reject) => {
    const deadline = setTimeout(() => {
      reject(new Error(`exec ${args.join(' ')} has not ended:\n${text(STDOUT)}${text(STDERR)}`));
      socket.terminate();
    }, DEADLINE_MILLIS);
    let problem = '';
    socket.on('message', (message: Buffer) => channels[message[0] ?? 0]?.push(message.subarray(1)));
    // The event `close`, which follows, ends the call.
    socket.on('error', (error) => {
      problem = `error: ${error.message}\n`;
    });
    socket.on('close', () => {
      clearTimeout(deadline);
      resolve({ stdout: text(STDOUT), ...endOf(text(ERROR), text(STDERR) + problem) });
    });
  });
}

/** `error` is the Status that the server sends at the end. */
function endOf(error: string, stderr: string): { code: number; stderr: string } {
  if (error === '') return { code: 1, stderr: `${stderr}error: the connection ended before the command\n` };
  const { status, message = '', details } = JSON.parse(error) as Status;
  if (status === 'Success') return { code: 0, stderr };
  const code = details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message;
  return { code: Number(code ?? 1), stderr: `${stderr}${message}\n` };
}

/** `lifepod run IMAGE -- COMMAND`: a session with one Pod, whose log is printed without prefixes. */
import type { UpOptions } from '../../engine/settings.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { UserError } from '../../platform/files.ts';
import { printError } from '../progress/standard-output.ts';
import { runSession } from './session.ts';

export interface RunOptions {
  dataDir: UpOptions['dataDir'];
  name?: string;
  namespace?: string;
  env?: string[];
}

export async function run(image: string, command: readonly string[], options: RunOptions): Promise<void> {
  const { dataDir, namespace } = options;
  const object = podOf(image, command, options);
  const output = { hasPrefix: false, say: printError, detail: () => undefined };
  await runSession({ dataDir, namespace }, output, () => Promise.resolve([{ object, source: '' }]));
}

/** Escapes `$`, so that the node does not expand $(NAME). */
const literal = (text: string): string => text.replaceAll('$', '$$$$');

const LONGEST_PREFIX = 50;

/**
 * Returns a Pod with one container that runs the command. The command replaces the default arguments of the image, not its entrypoint, as
 * with docker run and kubectl run. Throws a UserError if a variable is not valid.
 */
export function podOf(
  image: string,
  command: readonly string[],
  { name, env = [] }: Omit<RunOptions, 'dataDir'>,
): KubeObject {
  const metadata = name === undefined ? { generateName: `${prefixOf(image)}-` } : { name };
  const container = {
    name: 'main',
    image,
    // Like docker run, the node does not pull an image that it has, even if the tag is latest. A pull would fail offline.
    imagePullPolicy: 'IfNotPresent',
    ...(command.length === 0 ? {} : { args: command.map(literal) }),
    env: env.map(variableOf),
  };
  const object = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { restartPolicy: 'Never', containers: [container] } };
  return object as unknown as KubeObject;
}

function prefixOf(image: string): string {
  const base = image.replace(/@.*$/, '').replace(/^.*\//, '').replace(/:.*$/, '');
  const valid = base
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, LONGEST_PREFIX)
    .replace(/-+$/, '');
  return valid === '' ? 'run' : valid;
}

function variableOf(text: string): { name: string; value: string } {
  const at = text.indexOf('=');
  if (at <= 0) throw new UserError(`--env ${JSON.stringify(text)} is not a variable: give NAME=VALUE`);
  return { name: text.slice(0, at), value: literal(text.slice(at + 1)) };
}

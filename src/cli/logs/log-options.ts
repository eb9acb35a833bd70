/** Checks the options of `lifepod logs` and converts them to a query of the subresource log. Pure. Source: kubectl logs of v1.32. */
import { timeProblem } from '../../api/scalars.ts';
import { queryText } from '../../client/paths.ts';
import { parseDuration } from '../../machinery/time.ts';
import { UserError } from '../../platform/files.ts';

export interface LogCommandOptions {
  container?: string;
  follow?: boolean;
  allContainers?: boolean;
  previous?: boolean;
  timestamps?: boolean;
  prefix?: boolean;
  tail?: string;
  since?: string;
  sinceTime?: string;
  limitBytes?: string;
}

export interface LogRequest {
  follow: boolean;
  previous: boolean;
  timestamps: boolean;
  /** Limits on the printed part of each log. They do not apply to runs that begin while a Pod is followed. */
  part: { tailLines?: number; sinceSeconds?: number; sinceTime?: string; limitBytes?: number };
}

/** Throws a UserError if an option is invalid or if two options exclude each other. */
export function logRequest(options: LogCommandOptions): LogRequest {
  const tail = integer('tail', options.tail) ?? -1;
  const sinceSeconds = options.since === undefined ? undefined : durationSeconds('since', options.since);
  const limitBytes = integer('limit-bytes', options.limitBytes) ?? 0;
  if (options.sinceTime !== undefined && timeProblem(options.sinceTime) !== undefined) {
    throw new UserError(`--since-time ${JSON.stringify(options.sinceTime)} is not an RFC 3339 time`);
  }
  if (options.sinceTime !== undefined && sinceSeconds !== undefined) {
    throw new UserError('at most one of `sinceTime` or `sinceSeconds` may be specified');
  }
  if (options.allContainers === true && options.container !== undefined) {
    throw new UserError(`--all-containers=true should not be specified with container name ${options.container}`);
  }
  if (limitBytes < 0) throw new UserError('--limit-bytes must be greater than 0');
  if (sinceSeconds !== undefined && sinceSeconds < 0) throw new UserError('--since must be greater than 0');
  if (tail < -1) throw new UserError('--tail must be greater than or equal to -1');
  return {
    follow: options.follow === true,
    previous: options.previous === true,
    timestamps: options.timestamps === true,
    part: {
      tailLines: tail === -1 ? undefined : tail,
      sinceSeconds: sinceSeconds || undefined,
      sinceTime: options.sinceTime,
      limitBytes: limitBytes || undefined,
    },
  };
}

/**
 * Converts boolean flags from kubectl's form to commander's: `--follow=true` becomes `--follow`, `--follow=false` is omitted, and
 * `--prefix=false` becomes `--no-prefix`.
 */
export const plainFlags = (args: readonly string[]): string[] =>
  args.flatMap((arg) => {
    const [, flag, value] =
      /^(-f|-p|--(?:follow|all-containers|previous|timestamps|prefix))=(true|false)$/.exec(arg) ?? [];
    if (flag === undefined) return [arg];
    if (value === 'true') return [flag];
    return flag === '--prefix' ? ['--no-prefix'] : [];
  });

export const logQuery = (container: string, { part, ...flags }: LogRequest): string =>
  queryText({
    container,
    follow: flags.follow || undefined,
    previous: flags.previous || undefined,
    timestamps: flags.timestamps || undefined,
    ...part,
  });

function integer(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[+-]?\d+$/.test(text)) throw new UserError(`--${option} ${JSON.stringify(text)} is not a whole number`);
  return Number(text);
}

/** Rounds to whole seconds. Throws a UserError if the text is not a duration. */
function durationSeconds(option: string, text: string): number {
  const millis = parseDuration(text);
  if (millis === undefined) {
    throw new UserError(`--${option} ${JSON.stringify(text)} is not a duration such as 5s, 2m or 3h`);
  }
  return Math.sign(millis) * Math.round(Math.abs(millis) / 1000);
}

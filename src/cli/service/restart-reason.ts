/** Decides whether a repeated `lifepod up --install-service` restarts the engine. Pure. */

import { shortCommit } from '../../engine/version.ts';

/** An unknown commit is ''. */
export interface EngineVersion {
  gitVersion: string;
  gitCommit: string;
}

export interface ServiceChange {
  units: boolean;
  /** The options whose values differ from those of the running engine, such as `--port`. */
  options: readonly string[];
  /** Undefined if the running engine does not answer. */
  running: EngineVersion | undefined;
  installed: EngineVersion;
}

/** Returns a clause that follows "because"; undefined if the service may continue to run. */
export function restartReason({ units, options, running, installed }: ServiceChange): string | undefined {
  if (options.length > 0) return `the engine ran with another value of ${options.join(', ')}`;
  const isOther =
    running !== undefined && (running.gitVersion !== installed.gitVersion || running.gitCommit !== installed.gitCommit);
  if (isOther) return `the engine ran with ${nameOf(running)}, and ${nameOf(installed)} is installed`;
  return units ? 'its units have changed' : undefined;
}

const nameOf = ({ gitVersion, gitCommit }: EngineVersion): string =>
  gitCommit === '' ? gitVersion : `${gitVersion} (commit ${shortCommit(gitCommit)})`;

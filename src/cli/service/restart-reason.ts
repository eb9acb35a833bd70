/** Decides whether a repeated `lifepod up --install-service` restarts the engine. Pure. */

/** The version of an engine, as its API reports it. An unknown commit is ''. */
export interface EngineVersion {
  gitVersion: string;
  gitCommit: string;
}

export interface ServiceChange {
  /** Whether the text of a unit has changed. */
  units: boolean;
  /** The options whose values differ from those of the running engine, such as `--port`. */
  options: readonly string[];
  /** The version of the running engine; undefined if it does not answer. */
  running: EngineVersion | undefined;
  /** The version that is installed. */
  installed: EngineVersion;
}

/** Returns why the service must be restarted, as a clause that follows "because"; undefined if the service may continue to run. */
export function restartReason({ units, options, running, installed }: ServiceChange): string | undefined {
  if (options.length > 0) return `the engine ran with another value of ${options.join(', ')}`;
  const isOther =
    running !== undefined && (running.gitVersion !== installed.gitVersion || running.gitCommit !== installed.gitCommit);
  if (isOther) return `the engine ran with ${nameOf(running)}, and ${nameOf(installed)} is installed`;
  return units ? 'its units have changed' : undefined;
}

const nameOf = ({ gitVersion, gitCommit }: EngineVersion): string =>
  gitCommit === '' ? gitVersion : `${gitVersion} (commit ${gitCommit.slice(0, 12)})`;

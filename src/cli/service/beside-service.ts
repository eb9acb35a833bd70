/** Composes the sentence about an engine that an installed service does not run. */
import { effectOfKill, hintsFor } from '../hints.ts';
import { readService } from './service-state.ts';

export interface BesideService {
  text: string;
  /** Whether systemd restarts the service again and again, which cannot succeed beside the engine. */
  fails: boolean;
}

/** Returns undefined if no service is installed for the data folder, or if the service runs the engine `pid`. */
export function besideService(
  dataDir: string,
  pid: number,
  env: NodeJS.ProcessEnv,
  service = readService(dataDir),
): BesideService | undefined {
  if (service === undefined || service.pid === pid) return undefined;
  const fails = service.state !== 'stopped';
  const remedy = `'${hintsFor({ dataDir }, env).engine('up --install-service')}' lets the service run the engine, which ${effectOfKill(pid)}`;
  const text = fails
    ? `systemd restarts the service lifepod in vain, because an engine that it does not run (PID ${pid}) uses the data folder: ${remedy}`
    : `the installed service lifepod does not run this engine (PID ${pid}): ${remedy}`;
  return { text, fails };
}

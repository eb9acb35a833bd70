import { effectOfKill, hintsFor } from '../hints.ts';
import { serviceState } from './service-state.ts';

/** Returns the commands that make an engine run the installed program, and their effect on its Pods. */
export const replacement = (dataDir: string, pid: number, env: NodeJS.ProcessEnv): string => {
  const { asRoot, engine, start } = hintsFor({ dataDir }, env);
  return serviceState(dataDir) === undefined
    ? `'${asRoot(`kill ${pid}`)}', which ${effectOfKill(pid)}, then '${start()}'`
    : `'${engine('up --install-service')}', which leaves its Pods running`;
};

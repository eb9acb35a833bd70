/** Finds conditions that may harm the machine or its Pods but do not prevent the start of the engine, and warns about them. */
import { controlGroupProblem } from '../../platform/control-groups/available.ts';
import { replaceableBy } from '../../platform/folder-owners.ts';
import type { Platform } from '../../platform/platform.ts';
import { invokingUser } from '../certificates/user-kubeconfigs.ts';
import { networkWarnings } from '../engine-network.ts';
import type { Settings } from '../settings.ts';

/** Logs the warnings, and resolves with them as sentences for users. */
export async function startWarnings(settings: Settings, platform: Platform, signal: AbortSignal): Promise<string[]> {
  // No warning is needed about the user who has typed `sudo lifepod up`, because this user has the rights of root.
  const replaceable = replaceableBy(settings.dataDir, invokingUser(process.env)?.uid);
  if (replaceable !== undefined) platform.log.warn(replaceable);
  // Control groups may be missing only with the machine's own runtime: otherwise, checkMachine() has refused the start.
  const problem = controlGroupProblem();
  const groups =
    problem === undefined
      ? []
      : [`${problem.what}: limits of Pods have no effect, and metrics of CPU time and memory are missing`];
  for (const warning of groups) platform.log.warn(warning);
  const network = await networkWarnings(settings, platform, signal);
  return [...(replaceable === undefined ? [] : [replaceable]), ...groups, ...network];
}

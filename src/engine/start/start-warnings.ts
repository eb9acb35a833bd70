/** Finds facts that may harm the machine or its Pods although lifepod runs, and warns of them at the start of the engine. */
import { replaceableBy } from '../../platform/folder-owners.ts';
import type { Platform } from '../../platform/platform.ts';
import { invokingUser } from '../certificates/user-kubeconfigs.ts';
import { networkWarnings } from '../engine-network.ts';
import { hasControlGroups, NO_CONTROL_GROUPS } from '../machine-checks.ts';
import type { Settings } from '../settings.ts';

/** Logs the warnings, and resolves with them as sentences for users. */
export async function startWarnings(settings: Settings, platform: Platform, signal: AbortSignal): Promise<string[]> {
  // The user who has typed `sudo lifepod up` has the rights of root anyway.
  const replaceable = replaceableBy(settings.dataDir, invokingUser(process.env)?.uid);
  if (replaceable !== undefined) platform.log.warn(replaceable);
  // checkMachine() has already refused a start with a private containerd and without control groups.
  const groups = hasControlGroups()
    ? []
    : [`${NO_CONTROL_GROUPS}: limits of Pods have no effect, and metrics of CPU time and memory are missing`];
  for (const warning of groups) platform.log.warn(warning);
  const network = await networkWarnings(settings, platform, signal);
  return [...(replaceable === undefined ? [] : [replaceable]), ...groups, ...network];
}

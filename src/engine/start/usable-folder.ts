import { refuseUnusableFolder, refuseUnusablePath } from '../data-folder/new-folder.ts';
import { type EngineRecord, type UpOptions, usesPrivateContainerd } from '../settings.ts';

/**
 * Throws a UserError if the folder cannot be the data folder of an engine with these options. `record`: the settledRecord() of the folder.
 * The folder of an engine that has already used the private containerd is accepted.
 */
export function refuseUnusableStart(options: UpOptions, record: EngineRecord | undefined): void {
  const { dataDir } = options;
  if (record === undefined) refuseUnusableFolder(dataDir, { isPrivate: usesPrivateContainerd(options) });
  const former = record?.containerRuntimeEndpoint;
  if (former !== undefined && options.containerRuntimeEndpoint === '')
    refuseUnusablePath(dataDir, `keep --container-runtime-endpoint ${former}, or choose another --data-dir`);
}

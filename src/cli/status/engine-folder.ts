/** Selects the engine whose data folder and processes `lifepod status` reads in addition to the API. */
import { DEFAULT_DATA_DIR } from '../../engine/settings.ts';
import { dataDirOwner } from '../../platform/files.ts';
import { hintsFor, UNKNOWN_FOLDER } from '../hints.ts';
import { dataFolderOf } from '../kubeconfig/engine-folders.ts';
import { followedKubeconfigs } from '../kubeconfig/kubectl.ts';
import { onlyForRoot } from '../kubeconfig/own-kubeconfig.ts';
import { engineRunsIn } from '../kubeconfig/which-engine.ts';
import { kubeconfigPaths, type TargetOptions } from '../target.ts';

export interface SelectedEngine {
  /** Undefined if only the API can be read. */
  dataDir: string | undefined;
  unread: string[];
}

/** Says what is not read if the data folder is not known: the engine is on another machine, or its administrator made the kubeconfig. */
const unknownFolder = (): string =>
  `memory, disk, certificates and static manifests of the engine: to see them, type '${statusOf(UNKNOWN_FOLDER)}' on its machine, with its data folder as ${UNKNOWN_FOLDER}`;

/**
 * Returns the folder of --data-dir, else that of the engine of --kubeconfig or KUBECONFIG, else the default folder if its engine runs, else
 * the folder of the engine of ~/.kube/config, else the default folder. Returns no folder if the user has a kubeconfig, but may not read the
 * folder, or if the options select a server whose folder is not known. Throws a UserError if the user has no kubeconfig and may not read
 * the folder.
 */
export function selectEngine(
  options: TargetOptions,
  env: NodeJS.ProcessEnv,
  defaultFolder = DEFAULT_DATA_DIR,
  engineOf = dataFolderOf,
  forRoot = onlyForRoot,
): SelectedEngine {
  const { kubeconfig, context, dataDir } = options;
  if (dataDir !== undefined) {
    // If there is no kubeconfig that the user may read, pathsOf() throws the error that other commands also print.
    const isUnreadable = stateOf(dataDir) === 'unreadable' && pathsOf(options, env, true, defaultFolder).length > 0;
    return isUnreadable ? { dataDir: undefined, unread: [needsRoot(dataDir)] } : { dataDir, unread: [] };
  }
  const isAboutServer =
    (kubeconfig ?? context) !== undefined || Boolean(env['KUBECONFIG']) || followedKubeconfigs(env) !== undefined;
  if (!isAboutServer && stateOf(defaultFolder) === 'running') return { dataDir: defaultFolder, unread: [] };
  const folder = context === undefined ? engineOf(pathsOf(options, env, isAboutServer, defaultFolder)) : undefined;
  if (folder !== undefined)
    return stateOf(folder) === 'unreadable'
      ? { dataDir: undefined, unread: [needsRoot(folder)] }
      : { dataDir: folder, unread: [] };
  if (isAboutServer) return { dataDir: undefined, unread: [unknownFolder()] };
  // The kubeconfig in ~/.kube/config, if there is one, may be that of any cluster.
  const refused = forRoot(defaultFolder);
  if (refused !== undefined) throw refused;
  return { dataDir: defaultFolder, unread: [] };
}

const needsRoot = (folder: string): string =>
  `only root can read the data folder ${folder}: type '${statusOf(folder)}', which reports memory, disk, certificates and static manifests`;

const statusOf = (folder: string): string =>
  hintsFor({ dataDir: folder }, process.env, undefined, true).engine('status');

function pathsOf(options: TargetOptions, env: NodeJS.ProcessEnv, isRequired: boolean, defaultFolder: string): string[] {
  try {
    return kubeconfigPaths(options, env, engineRunsIn, undefined, defaultFolder);
  } catch (error) {
    if (isRequired) throw error;
    return [];
  }
}

function stateOf(dataDir: string): 'running' | 'stopped' | 'unreadable' {
  try {
    return dataDirOwner(dataDir) === undefined ? 'stopped' : 'running';
  } catch (error) {
    // readEngine() reports other errors, for example a folder that `lifepod down` has locked.
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'unreadable' : 'stopped';
  }
}

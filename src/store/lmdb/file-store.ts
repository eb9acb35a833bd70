/** The interface of the store in a file, and the options for opening it. */
import type { Log } from '../../platform/platform.ts';
import type { Store } from '../store.ts';

export interface LmdbStoreOptions {
  /** The folder of the environment. It is created with mode 0700 if it does not exist. */
  directory: string;
  /** The maximum number of revisions in the history, which serves watches and reads of older revisions. Default: 10,000. */
  historyRevisions?: number;
  log?: Log;
}

export interface FileStore extends Store {
  /** Writes the newest state and the history to a new data file in the empty folder, as copyTables() does. Writes continue meanwhile. */
  copyTo(folder: string): Promise<void>;
}

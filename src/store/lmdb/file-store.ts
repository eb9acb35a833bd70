import type { Log } from '../../platform/platform.ts';
import type { Store } from '../store.ts';

export interface LmdbStoreOptions {
  /** A missing folder is created with mode 0700. */
  directory: string;
  /** The maximum number of revisions in the history, which serves watches and reads of older revisions. Default: 10,000. */
  historyRevisions?: number;
  log?: Log;
}

export interface FileStore extends Store {
  /** Writes the newest state and the history to a new data file in the empty folder (see copyTables()). Does not delay other calls. */
  copyTo(folder: string): Promise<void>;
}

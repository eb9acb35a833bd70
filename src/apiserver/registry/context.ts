import type { Log, Timers } from '../../platform/platform.ts';
import type { SerialByKey } from '../../platform/serial-by-key.ts';
import type { RequestContext } from '../../ports/request.ts';
import type { Store } from '../../store/store.ts';
import type { Admission } from '../admission/chain.ts';
import type { WatchCache } from '../cache/watch-cache.ts';
import type { TokenIssuer } from '../pki/tokens.ts';
import type { ObjectRoom } from './object-memory-limit.ts';
import type { SelectorRoom } from './reads/selector-limit.ts';
import type { ResourceIndex } from './resources.ts';

export type Sent<T> = T & { request: RequestContext };

export interface RegistryContext {
  store: Store;
  cache: WatchCache;
  resources: ResourceIndex;
  timers: Timers;
  log: Log;
  admission: Admission;
  room: ObjectRoom;
  selectors: SelectorRoom;
  randomBytes: (size: number) => Uint8Array;
  takingTurns: SerialByKey['run'];
  issueToken: TokenIssuer['issue'] | undefined;
}

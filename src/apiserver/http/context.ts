import type { KindCatalog } from '../../api/catalog.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import type { Authorizer } from '../../ports/authorizer.ts';
import type { ResourceBackend } from '../../ports/backend.ts';
import type { NodeConnection } from '../../ports/node-connection.ts';
import type { NodeReports } from '../../ports/node-reports.ts';
import type { Authentication } from '../auth/authentication/authenticate.ts';
import type { StreamRoom } from '../streaming/spdy/stream-limit.ts';
import type { BodyReader } from './body-reader.ts';
import type { Places, Waits } from './bounds/limits.ts';
import type { Unfinished } from './bounds/unfinished.ts';

export interface ServerContext {
  readonly backend: ResourceBackend;
  readonly catalog: KindCatalog;
  readonly nodes: NodeConnection & NodeReports;
  readonly authentication: Authentication;
  readonly timers: Timers;
  readonly log: Log;
  readonly authorizer: Authorizer;
  readonly bodies: BodyReader;
  /** Counts request bodies and WebSocket messages together, over all clients. */
  readonly unfinished: Unfinished;
  /** Limits the requests that wait, for example in an admission plugin. */
  readonly waits: Waits;
  readonly watches: Places;
  /** Limits the requests for logs, exec, attach, port-forward and the proxies of Pods, Services and Nodes. */
  readonly streams: Places;
  /** Limits the streams of all port-forward requests together. */
  readonly forwarded: StreamRoom;
}

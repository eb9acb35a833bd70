/** A placeholder for the connection to the node: the API server needs a connection before the node agent has started. */

import { serviceUnavailable } from '../machinery/status.ts';
import type { NodeConnection } from '../ports/node-connection.ts';
import type { NodeReports } from '../ports/node-reports.ts';

export type LateNode = NodeConnection & NodeReports;

/** Before connect() is called, all calls fail with 503. */
export function lateNode(): { connection: LateNode; connect(connection: LateNode): void } {
  let connected: LateNode | undefined;
  const node = (): LateNode => {
    if (connected === undefined) throw serviceUnavailable('the node is starting');
    return connected;
  };
  return {
    connect: (connection) => {
      connected = connection;
    },
    connection: {
      logs: (...query) => node().logs(...query),
      exec: async (...query) => node().exec(...query),
      execTurn: async (signal) => node().execTurn(signal),
      attach: async (...query) => node().attach(...query),
      portForward: async (...query) => node().portForward(...query),
      usage: async () => node().usage(),
      document: async (...query) => node().document(...query),
    },
  };
}

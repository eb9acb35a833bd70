/**
 * A web server that runs in Pods: `node drained-server.ts PORT`. It answers each request with its host name after a short delay, as a busy
 * server does, and ends at SIGTERM immediately. GET /ready is for probes. GET /drain is for a PreExit entry: after it, each response closes
 * its connection, and the response to /drain is sent when no request has arrived for QUIET_MILLIS.
 */
import { createServer, type ServerResponse } from 'node:http';
import { hostname } from 'node:os';

const WORK_MILLIS = 20;
/** Longer than lifepod takes to apply changed endpoints to its rules, and much longer than the time between two requests of the load. */
const QUIET_MILLIS = 2000;

const draining: ServerResponse[] = [];
let count = 0;
const quiet = setTimeout(() => {
  const before = count;
  // Requests that have arrived while this process had no processor are handled first.
  setImmediate(() => {
    if (count === before) for (const response of draining) response.end('drained');
  });
}, QUIET_MILLIS);

createServer((request, response) => {
  if (request.url === '/ready') {
    response.end();
    return;
  }
  count += 1;
  quiet.refresh();
  if (request.url === '/drain') {
    draining.push(response);
    return;
  }
  setTimeout(() => {
    if (draining.length > 0) response.setHeader('Connection', 'close');
    response.end(hostname());
  }, WORK_MILLIS);
}).listen(Number(process.argv[2]));

process.on('SIGTERM', () => process.exit(0));

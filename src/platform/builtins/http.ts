/**
 * Exports the parts of node:http that lifepod uses, without importing node:http: an import evaluates all exports, and one of them loads
 * undici, the library of fetch(), which most engines do not use. This would cost about 25 ms at each start, and 1 MiB of memory.
 */
import type * as http from 'node:http';

export const { createServer, request, validateHeaderName, validateHeaderValue, IncomingMessage, ServerResponse } =
  process.getBuiltinModule('node:http');
export type IncomingMessage = http.IncomingMessage;
export type ServerResponse = http.ServerResponse;

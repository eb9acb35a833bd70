/**
 * An import of node:http evaluates all its exports, and one of them loads undici, the library of fetch(). This would cost about 25 ms at
 * each start, and 1 MiB of memory. process.getBuiltinModule() returns the module without evaluating the other exports.
 */
import type * as http from 'node:http';

export const { createServer, request, validateHeaderName, validateHeaderValue, IncomingMessage, ServerResponse } =
  process.getBuiltinModule('node:http');
export type IncomingMessage = http.IncomingMessage;
export type ServerResponse = http.ServerResponse;

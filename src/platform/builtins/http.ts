/**
 * The parts of node:http that are not types. An import of node:http would evaluate all its exports, and one of them loads the client of
 * Node.js for the web (undici), which most engines do not use: some 25 ms of each start, and 1 MiB.
 */
import type * as http from 'node:http';

export const { createServer, request, validateHeaderName, validateHeaderValue, IncomingMessage, ServerResponse } =
  process.getBuiltinModule('node:http');
export type IncomingMessage = http.IncomingMessage;
export type ServerResponse = http.ServerResponse;

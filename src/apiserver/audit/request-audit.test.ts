import { expect, test } from 'vitest';
import { unauthorized } from '../../machinery/status.ts';
import { createObjectRoom, type ObjectRoom } from './object-room.ts';
import { RequestAudit } from './request-audit.ts';

const start = (room: ObjectRoom): RequestAudit =>
  new RequestAudit({
    facts: { auditID: 'a', requestURI: '/', verb: 'list', objectRef: { resource: 'configmaps' }, received: 0 },
    config: { level: 'RequestResponse', omitStages: new Set(), omitManagedFields: false },
    isLongRunning: false,
    annotations: new Map(),
    sink: { isStrict: false, add: () => undefined, close: async () => undefined },
    room,
    now: () => 0,
    onRefused: () => undefined,
  });

const leftIn = (room: ObjectRoom): number => {
  let chars = 0;
  while (room.join(['x'.repeat(chars + 1)]) !== undefined) room.leave(++chars);
  return chars;
};

test('a request whose authentication has failed holds no room for objects after its end', () => {
  const room = createObjectRoom(1000);
  const audit = start(room);
  audit.unauthenticated('no credentials');
  audit.failed(unauthorized().status);
  audit.started(401);
  void audit.complete();
  void audit.complete();
  expect(leftIn(room)).toBe(1000);
});

test('a failure after the last event holds no room for objects', () => {
  const room = createObjectRoom(1000);
  const audit = start(room);
  audit.started(200);
  void audit.complete();
  audit.failed(unauthorized().status);
  expect(leftIn(room)).toBe(1000);
});

import { expect, test } from 'vitest';
import { askUdp } from './upstream.ts';

const query = Buffer.alloc(20);

test('a name server to which the machine has no route is reported as an error', async () => {
  // The kernel rejects connect() to the broadcast address with EACCES, in the same way as connect() to an address without a route.
  const asked = askUdp(query, { address: '255.255.255.255', port: 53 }, () => true, new AbortController().signal);
  await expect(asked).rejects.toMatchObject({ syscall: 'connect', code: 'EACCES' });
});

test('a query that is aborted while it is being sent rejects with the reason', async () => {
  for (const address of ['127.0.0.1', '255.255.255.255']) {
    const aborting = new AbortController();
    const asked = askUdp(query, { address, port: 9 }, () => true, aborting.signal);
    aborting.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
  }
  // Runs the callbacks of the sockets. Vitest fails the test if one of them throws.
  await new Promise(setImmediate);
});

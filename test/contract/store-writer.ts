/** A process that writes to an LMDB store until it is killed, and tells its parent each answer. */
import { openLmdbStore } from '../../src/store/lmdb/lmdb-store.ts';

const store = await openLmdbStore({ directory: process.argv[2] as string });
for (let i = 0; ; i += 3) {
  await Promise.all(
    [i, i + 1, i + 2].map(async (n) => {
      const key = `/written/${n}`;
      const result = await store.txn({ compare: [], puts: [{ key, value: Buffer.alloc(500, 120) }] });
      process.send?.({ key, revision: result.revision });
    }),
  );
}

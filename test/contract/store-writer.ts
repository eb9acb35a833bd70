/**
 * Writes to an LMDB store until it is killed, and sends the result of each write to its parent process. Its arguments are the folder of the
 * store, the prefix of the keys, and the maximum length of a value in bytes. Four of five values have at most a fiftieth of that length.
 */
import { openLmdbStore } from '../../src/store/lmdb/lmdb-store.ts';

const [folder = '', prefix = '/written/', longest = '500'] = process.argv.slice(2);
const store = await openLmdbStore({ directory: folder });
for (let i = 0; ; i += 3) {
  await Promise.all(
    [i, i + 1, i + 2].map(async (n) => {
      const key = `${prefix}${n}`;
      const length = Math.ceil((Number(longest) * ((n * 7919) % 1000)) / (n % 5 === 0 ? 1000 : 50_000));
      try {
        const { revision } = await store.txn({ compare: [], puts: [{ key, value: Buffer.alloc(length, 120) }] });
        process.send?.({ key, revision });
      } catch (error) {
        process.send?.({ refused: (error as Error).message });
      }
    }),
  );
}

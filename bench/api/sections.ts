/** Each section of the benchmark is bounded by a number of requests, and takes less than a minute per checkout. */
import { rm } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { newData, startNewServer, startServer } from './bench-server.ts';
import { Connection } from './connection.ts';
import { fanoutOf, WATCHERS, WRITE } from './fanout.ts';
import { openLmdbFloor } from './lmdb-floor.ts';
import {
  AT_ONCE,
  loadOf,
  mebibytes,
  millis,
  millisOf,
  openMany,
  perSecond,
  type Request,
  rateOf,
  type Section,
} from './measure.ts';
import { newConfigMap, newPod, PODS, pod, TEMPLATE } from './objects.ts';
import { protocols } from './protocols.ts';
import { rights } from './rights.ts';

const creates: Section = {
  rounds: 15,
  async open(checkout) {
    const server = await startNewServer(checkout);
    const many = await openMany(server.admin, AT_ONCE);
    const constants = await openMany(server.constants, AT_ONCE);
    const floor = await openLmdbFloor(Buffer.from(pod(TEMPLATE)));
    await rateOf(many, 1000, newPod);
    await rateOf(many, 1000, newConfigMap);
    const one = many.slice(0, 1);
    return {
      measures: [
        async () => [perSecond('Pods created one by one', await rateOf(one, 60, newPod))],
        async () => [perSecond('ConfigMaps created one by one', await rateOf(one, 60, newConfigMap))],
        loadOf(server, 'Pods created 64 at once', many, 600, newPod),
        loadOf(server, 'ConfigMaps created 64 at once', many, 600, newConfigMap),
        async () => [
          perSecond('floor: constant answers one by one', await rateOf(constants.slice(0, 1), 100, newPod)),
          perSecond('floor: constant answers 64 at once', await rateOf(constants, 1000, newPod)),
          perSecond('floor: durable puts of LMDB one by one', await floor.rate(1, 60)),
          perSecond('floor: durable puts of LMDB 64 at once', await floor.rate(AT_ONCE, 4000)),
        ],
      ],
      async end() {
        for (const connection of [...many, ...constants]) connection.close();
        await floor.close();
        await server.stop();
      },
    };
  },
};

const gets: Section = {
  starts: 9,
  rounds: 1,
  async open(checkout) {
    const server = await startNewServer(checkout);
    const many = await openMany(server.admin, AT_ONCE);
    const constants = await openMany(server.constants, AT_ONCE);
    const { body } = await (many[0] as Connection).send('GET', `${PODS}/${TEMPLATE}`);
    await constants[0]?.send('POST', PODS, body.toString());
    const get = (): Request => ['GET', `${PODS}/${TEMPLATE}`];
    await rateOf(many, 30_000, get);
    return {
      measures: [
        loadOf(server, 'gets of a Pod 64 at once', many, 30_000, get),
        async () => [perSecond('floor: constant answers 64 at once', await rateOf(constants, 30_000, get))],
      ],
      async end() {
        for (const connection of [...many, ...constants]) connection.close();
        await server.stop();
      },
    };
  },
};

async function readPages(connection: Connection, limit: number): Promise<void> {
  for (let next = ''; ; ) {
    const { body } = await connection.send('GET', `${PODS}?limit=${limit}${next}`);
    const token = /"continue":"([^"]+)"/.exec(body.toString('latin1', 0, 2000))?.[1];
    if (token === undefined) return;
    next = `&continue=${encodeURIComponent(token)}`;
  }
}

const lists = (count: number, times: number, starts: number, rounds: number): Section => ({
  starts,
  rounds,
  async open(checkout) {
    const dataDir = await newData(checkout, count);
    const server = await startServer(checkout, dataDir);
    const connection = await Connection.open(server.admin);
    // The copies have the label of the template. Every tenth gets the label that is selected.
    const pods = `${count.toLocaleString('en')} Pods`;
    for (let i = 0; i < count; i += 10)
      await connection.send(
        'PATCH',
        `${PODS}/copy-${i}`,
        '{"metadata":{"labels":{"rare":"yes"}}}',
        'application/merge-patch+json',
      );
    const whole = () => connection.send('GET', PODS);
    const byLabel = () => connection.send('GET', `${PODS}?labelSelector=rare%3Dyes`);
    const paged = () => readPages(connection, count / 10);
    for (const list of [whole, byLabel, paged]) await millisOf(3, list);
    return {
      measures: [
        async () => [millis(`list of ${pods}`, await millisOf(times, whole))],
        async () => [millis(`list of ${pods} by label (one in ten)`, await millisOf(times * 2, byLabel))],
        async () => [millis(`list of ${pods} in 10 pages`, await millisOf(times, paged))],
      ],
      async end() {
        connection.close();
        await server.stop();
        await rm(dataDir, { recursive: true, force: true });
      },
    };
  },
});

const fanout: Section = {
  starts: 7,
  rounds: 2,
  async open(checkout) {
    const server = await startNewServer(checkout);
    const { admin, constants } = server;
    const writes = await fanoutOf(server, WRITE, await openMany(admin, WATCHERS));
    const client = await Connection.open(admin);
    const { body } = await client.send('GET', `${PODS}/${TEMPLATE}`);
    client.close();
    const floor = await openMany(constants, WATCHERS + 1);
    await floor[0]?.send('POST', PODS, body.toString());
    const floorWrites = await fanoutOf(server, `floor: ${WRITE}`, floor.slice(1), constants);
    return {
      measures: [writes.measure, floorWrites.measure],
      async end() {
        floor[0]?.close();
        for (const { close } of [writes, floorWrites]) close();
        await server.stop();
      },
    };
  },
};

const memory: Section = {
  rounds: 3,
  open: async (checkout) => ({
    measures: [
      async () => {
        const server = await startNewServer(checkout);
        const many = await openMany(server.admin, AT_ONCE);
        await rateOf(many, 10_000, newPod);
        await pause(3000);
        const resident = await server.residentMebibytes();
        for (const connection of many) connection.close();
        await server.stop();
        return [mebibytes('resident memory after 10,000 Pods were created', resident)];
      },
    ],
    end: async () => undefined,
  }),
};

const start: Section = {
  rounds: 3,
  async open(checkout) {
    const dataDir = await newData(checkout, 50_000);
    return {
      measures: [
        async () => {
          const began = performance.now();
          const server = await startServer(checkout, dataDir);
          const connection = await Connection.open(server.admin);
          await connection.send('GET', `${PODS}?limit=1`);
          const took = performance.now() - began;
          const resident = await server.residentMebibytes();
          connection.close();
          await server.stop();
          return [millis('start with 50,000 Pods', took), mebibytes('resident memory after that start', resident)];
        },
      ],
      end: () => rm(dataDir, { recursive: true, force: true }),
    };
  },
};

export const sections: Record<string, Section> = {
  creates,
  gets,
  'lists-1000': lists(1000, 25, 11, 2),
  'lists-10000': lists(10_000, 3, 1, 7),
  fanout,
  protocols,
  memory,
  start,
  rights,
};

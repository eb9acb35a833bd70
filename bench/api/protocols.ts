/** Compares HTTP/2 with HTTP/1.1, on the same server. */
import { startNewServer } from './bench-server.ts';
import type { Target } from './connection.ts';
import { fanoutOf, WATCHERS, WRITE } from './fanout.ts';
import { Http2Connection } from './http2-connection.ts';
import { AT_ONCE, loadOf, type Measure, openAll, openMany, type Request, rateOf, type Section } from './measure.ts';
import { CONFIG_MAPS, configMap, PODS, TEMPLATE } from './objects.ts';

/** The server allows 100 streams on a connection of HTTP/2. */
const STREAMS = 100;

export const protocols: Section = {
  rounds: 5,
  async open(checkout) {
    const server = await startNewServer(checkout);
    const { admin } = server;
    const one = await Http2Connection.open(admin);
    const many = await openAll(() => Http2Connection.open(admin), AT_ONCE);
    const older = await openMany(admin, AT_ONCE);
    const get = (): Request => ['GET', `${PODS}/${TEMPLATE}`];
    const list = (): Request => ['GET', `${CONFIG_MAPS}?fieldSelector=metadata.name%3Dlarge`];
    const large = JSON.stringify({ ...JSON.parse(configMap('large')), data: { text: 'x'.repeat(900_000) } });
    await older[0]?.send('POST', CONFIG_MAPS, large);
    for (let i = 0; i < AT_ONCE; i++) await older[0]?.send('POST', CONFIG_MAPS, configMap(`small-${i}`));
    let patched = 0;
    const patch = (): Request => {
      const data = `{"data":{"level":"${patched}"}}`;
      return ['PATCH', `${CONFIG_MAPS}/small-${patched++ % AT_ONCE}`, data, 'application/merge-patch+json'];
    };
    const streams = Array.from({ length: AT_ONCE }, () => one);
    const kinds = [
      ['HTTP/1.1, 64 connections', older],
      ['HTTP/2, 64 connections', many],
      ['HTTP/2, 1 connection', streams],
    ] as const;
    /** Opens the watches during the measurement, so that they do not slow down the other measurements. */
    const fanoutAlone =
      (how: string, open: () => Promise<Parameters<typeof fanoutOf>[2]>): Measure =>
      async () => {
        const { measure, close } = await fanoutOf(server, `${WRITE}, ${how}`, await open());
        const figures = await measure();
        close();
        return figures;
      };
    for (const [, connections] of kinds) await rateOf(connections, 3000, get);
    return {
      measures: [
        ...kinds.map(([how, each]) => loadOf(server, `gets of a Pod 64 at once, ${how}`, each, 3000, get)),
        ...kinds.map(([how, each]) => loadOf(server, `patches of 64 ConfigMaps 64 at once, ${how}`, each, 600, patch)),
        ...kinds.map(([how, each]) => loadOf(server, `lists of 0.9 MB 64 at once, ${how}`, each, 200, list)),
        fanoutAlone('HTTP/1.1', () => openMany(admin, WATCHERS)),
        fanoutAlone('HTTP/2 on 5 connections', () => openShared(admin, WATCHERS)),
        fanoutAlone('HTTP/2 on 500 connections', () => openAll(() => Http2Connection.open(admin), WATCHERS)),
      ],
      async end() {
        for (const connection of [one, ...many, ...older]) connection.close();
        await server.stop();
      },
    };
  },
};

/** Opens as many connections of HTTP/2 as `count` watches need. A connection occurs in the result once for each of its streams. */
async function openShared(target: Target, count: number): Promise<Http2Connection[]> {
  const connections = await openAll(() => Http2Connection.open(target), Math.ceil(count / STREAMS));
  return Array.from({ length: count }, (_, index) => connections[Math.floor(index / STREAMS)] as Http2Connection);
}

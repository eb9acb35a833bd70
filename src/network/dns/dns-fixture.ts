import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '../../client/client.ts';
import { createSharedInformers } from '../../client/shared-informers.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { type Dns, type DnsOptions, startDns } from './dns.ts';

export interface TestDns extends Dns {
  folder: string;
  /** Starts the DNS of another engine on the same socket. A new process replaces the running one if `other` changes the settings. */
  again(other?: Partial<DnsOptions>): Promise<Dns>;
  disconnect(): void;
  remove(): Promise<void>;
}

/** `resolvConf`: the content of the file with the name servers for names outside the cluster. */
export async function startTestDns(
  client: Client,
  { resolvConf = '', ...other }: Partial<DnsOptions> = {},
): Promise<TestDns> {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-dns-'));
  writeFileSync(join(folder, 'resolv.conf'), resolvConf);
  const controllers: AbortController[] = [];
  const start = (more: Partial<DnsOptions>): Promise<Dns> => {
    const controller = new AbortController();
    controllers.push(controller);
    const common = { timers: systemTimers(), log: silentLog };
    return startDns({
      informers: createSharedInformers({ client, ...common }),
      addresses: ['127.0.0.1'],
      port: 0,
      clusterDomain: 'cluster.local',
      resolvConf: join(folder, 'resolv.conf'),
      socket: join(folder, 'dns.sock'),
      logFile: join(folder, 'dns.log'),
      signal: controller.signal,
      ...common,
      ...other,
      ...more,
    });
  };
  try {
    const dns = await start({});
    return {
      ...dns,
      folder,
      again: (more = {}) => start(more),
      disconnect: () => controllers[0]?.abort(),
      async remove() {
        for (const controller of controllers) controller.abort();
        await dns.stop();
        rmSync(folder, { recursive: true });
      },
    };
  } catch (error) {
    rmSync(folder, { recursive: true });
    throw error;
  }
}

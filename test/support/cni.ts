/** Attaches network namespaces to the Pod network as a runtime does with libcni. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CNI_CACHE, type HostPort } from '../../src/network/pod-network/attachments.ts';
import { cniConfigurationPath, type Instance, networkNames } from '../../src/network/pod-network/names.ts';
import { runCommand } from '../../src/platform/processes.ts';

export const PLUGINS = '/usr/lib/cni';

export interface Sandbox {
  /** A network namespace of `ip netns`; also the ID of the sandbox. */
  name: string;
  hostPorts?: readonly HostPort[];
  /** The network namespace of `ip netns` that stands for the machine; absent: the namespace of this process. */
  machine?: string;
}

interface Result {
  ips: { address: string }[];
}

const recordPath = (instance: Instance, { name }: Sandbox): string =>
  join(CNI_CACHE, `${networkNames(instance).network}-${name}-eth0`);

/** Also writes libcni's record. Resolves with the addresses of the sandbox. */
export async function attach(instance: Instance, sandbox: Sandbox): Promise<string[]> {
  const result = await callPlugins(instance, sandbox, 'ADD');
  const record = {
    kind: 'cniCacheV1',
    containerId: sandbox.name,
    ifName: 'eth0',
    networkName: networkNames(instance).network,
    config: readFileSync(cniConfigurationPath(instance)).toString('base64'),
    capabilityArgs: { portMappings: portMappingsOf(sandbox) },
    result,
  };
  mkdirSync(CNI_CACHE, { recursive: true });
  writeFileSync(recordPath(instance, sandbox), JSON.stringify(record));
  return (result as Result).ips.map(({ address }) => address.split('/')[0] as string);
}

/** Returns the host ports as containerd writes them, with capital letters. */
const portMappingsOf = ({ hostPorts = [] }: Sandbox): object[] =>
  hostPorts.map(({ protocol, hostPort, containerPort, hostIp }) => ({
    Protocol: protocol,
    HostPort: hostPort,
    ContainerPort: containerPort,
    HostIP: hostIp ?? '',
  }));

export async function detach(instance: Instance, sandbox: Sandbox): Promise<void> {
  await callPlugins(instance, sandbox, 'DEL');
  rmSync(recordPath(instance, sandbox), { force: true });
}

/**
 * Calls the plugins of the configuration, for DEL in reverse order, with the result of the previous plugin. Resolves with the last result.
 */
async function callPlugins(instance: Instance, sandbox: Sandbox, command: 'ADD' | 'DEL'): Promise<unknown> {
  const { name, machine } = sandbox;
  const portMappings = portMappingsOf(sandbox);
  const list = JSON.parse(readFileSync(cniConfigurationPath(instance), 'utf8')) as {
    cniVersion: string;
    name: string;
    plugins: { type: string; capabilities?: { portMappings: boolean } }[];
  };
  let result: unknown;
  for (const plugin of command === 'ADD' ? list.plugins : list.plugins.toReversed()) {
    const previous = result === undefined ? {} : { prevResult: result };
    const ports = plugin.capabilities?.portMappings === true ? { runtimeConfig: { portMappings } } : {};
    const input = JSON.stringify({ ...plugin, cniVersion: list.cniVersion, name: list.name, ...previous, ...ports });
    const env = {
      PATH: process.env['PATH'],
      CNI_COMMAND: command,
      CNI_CONTAINERID: name,
      CNI_NETNS: `/run/netns/${name}`,
      CNI_IFNAME: 'eth0',
      CNI_PATH: PLUGINS,
    };
    const [program, ...args] = [
      ...(machine === undefined ? [] : ['ip', 'netns', 'exec', machine]),
      join(PLUGINS, plugin.type),
    ];
    const { code, stdout } = await runCommand(program as string, args, { input, env });
    if (code !== 0) throw new Error(`${plugin.type}: ${stdout}`);
    if (stdout !== '') result = JSON.parse(stdout);
  }
  return result;
}

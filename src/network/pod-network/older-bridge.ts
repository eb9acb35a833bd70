/**
 * Pods of an older version of lifepod have interfaces that are ports of the bridge, and host ports that are rules of the CNI plugin
 * portmap. This file gives them the form that the plugin ptp would have created. Connections continue: addresses remain, and the kernel
 * keeps the translations of connections that it tracks. All functions may be repeated, also after an interruption.
 */
import { join } from 'node:path';
import { runCommand } from '../../platform/processes.ts';
import { type Attachment, readAttachments } from './attachments.ts';
import { type Link, readLinks, runIp } from './links.ts';
import { type Instance, networkNames } from './names.ts';

export interface MoveOptions extends Instance {
  bridge: string;
  podCidr: string;
  gateway: string;
  /** Undefined if the CNI plugins are not installed. */
  pluginDirectory: string | undefined;
  signal: AbortSignal;
}

/** Moves the sandboxes off the bridge. Does nothing if the bridge has no ports. */
export async function moveOffBridge(options: MoveOptions): Promise<void> {
  const { bridge, signal } = options;
  const ports = await readLinks(['link', 'show', 'master', bridge], signal);
  if (ports.length === 0) return;
  const attachments = [...(await readAttachments(networkNames(options).network)).values()];
  const [{ address: hardware } = { address: '' }] = await readLinks(['link', 'show', 'dev', bridge], signal);
  for (const port of ports) {
    const attachment = attachments.find(({ link }) => link === port.ifname);
    if (attachment === undefined) {
      // There is no record, because the sandbox was being attached or detached when its runtime ended. The runtime will detach the sandbox.
      await runIp([`link set ${port.ifname} nomaster`], signal);
      continue;
    }
    await movePort(port, attachment, hardware, options);
  }
}

/** Replaces the routes of the sandbox before its interface is detached, and keeps the hardware address of its gateway. */
async function movePort(
  { ifname }: Link,
  { addresses, namespace }: Attachment,
  hardware: string,
  { podCidr, gateway, signal }: MoveOptions,
): Promise<void> {
  const [address = ''] = addresses;
  const routes = [
    `route replace ${gateway}/32 dev eth0 scope link src ${address}`,
    `route replace ${podCidr} via ${gateway} dev eth0 src ${address}`,
  ];
  await runIp(routes, signal, namespace);
  const link = [
    `link set ${ifname} nomaster`,
    `link set ${ifname} address ${hardware}`,
    `address replace ${gateway}/32 dev ${ifname}`,
    `route replace ${address}/32 dev ${ifname} scope host`,
  ];
  await runIp(link, signal);
}

/**
 * Lets the plugin portmap remove its rules for the host ports of older Pods. Must be called after the instance's table has got these ports.
 * If the plugin fails, its rules remain until the machine restarts.
 */
export async function removePortmapRules(options: MoveOptions): Promise<void> {
  const { network } = networkNames(options);
  for (const attachment of (await readAttachments(network)).values()) {
    if (attachment.hostPorts.length > 0 && attachment.usesPortmap) await removeRules(attachment, network, options);
  }
}

async function removeRules(
  { sandboxId, namespace, hostPorts, addresses }: Attachment,
  network: string,
  { pluginDirectory, signal }: MoveOptions,
): Promise<void> {
  if (pluginDirectory === undefined) return;
  const portMappings = hostPorts.map(({ hostIp, ...port }) => ({ ...port, hostIP: hostIp ?? '' }));
  const configuration = {
    cniVersion: '1.0.0',
    name: network,
    type: 'portmap',
    runtimeConfig: { portMappings },
    prevResult: { cniVersion: '1.0.0', ips: addresses.map((address) => ({ address: `${address}/32` })) },
  };
  const env = {
    PATH: process.env['PATH'],
    CNI_COMMAND: 'DEL',
    CNI_CONTAINERID: sandboxId,
    CNI_NETNS: namespace,
    CNI_IFNAME: 'eth0',
    CNI_PATH: pluginDirectory,
  };
  await runCommand(join(pluginDirectory, 'portmap'), [], { input: JSON.stringify(configuration), env, signal });
}

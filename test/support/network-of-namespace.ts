/**
 * Sets up or removes the Pod network in the network namespace of this process: `network-of-namespace.ts up|down OPTIONS`, where OPTIONS are
 * those of setUpNetwork() as JSON. Run with `ip netns exec`, it can try settings of the kernel that would affect other tests.
 */
import { type NetworkOptions, setUpNetwork } from '../../src/network/pod-network/pod-network.ts';
import { tearDownNetwork } from '../../src/network/pod-network/tear-down.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { silentLog } from '../../src/platform/silent-log.ts';
import { PLUGINS } from './cni.ts';

const [command, text = ''] = process.argv.slice(2);
const given = JSON.parse(text) as Omit<NetworkOptions, 'pluginDirectory' | 'timers' | 'log' | 'signal'>;
const controller = new AbortController();
const { signal } = controller;
if (command === 'down') await tearDownNetwork({ ...given, runtimeFolder: given.dataDir, signal });
else await setUpNetwork({ ...given, pluginDirectory: PLUGINS, timers: systemTimers(), log: silentLog, signal });
controller.abort();

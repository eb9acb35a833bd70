import { expect, test, vi } from 'vitest';
import { nodePlatform } from '../platform/node-js.ts';
import { silentLog } from '../platform/silent-log.ts';
import { networkWarnings } from './engine-network.ts';
import { resolveSettings } from './settings.ts';

test('an interrupted start does not log that the packet filter cannot be examined', async () => {
  const warn = vi.fn();
  const platform = { ...nodePlatform('error'), log: { ...silentLog, warn } };
  const settings = resolveSettings({ dataDir: '/nonexistent', nodeName: 'node' }, undefined);
  expect(await networkWarnings(settings, platform, AbortSignal.abort())).toEqual([]);
  expect(warn).not.toHaveBeenCalled();
});

import { expect, test } from 'vitest';
import { recordOf, resolveSettings } from '../settings.ts';
import { refuseUnusableStart } from './usable-folder.ts';

const dataDir = '/srv/a:b';
const ENDPOINT = 'unix:///run/containerd/containerd.sock';
const UNUSABLE = "containers cannot run in /srv/a:b, because the path contains ':': ";
const record = (endpoint: string) =>
  recordOf(resolveSettings({ dataDir, containerRuntimeEndpoint: endpoint }, undefined), 7000);

test.each([
  ['a first start with the private containerd', {}, undefined, `${UNUSABLE}choose another --data-dir`],
  ["a first start with the machine's runtime", { containerRuntimeEndpoint: ENDPOINT }, undefined, undefined],
  ["a further start with the machine's runtime", {}, ENDPOINT, undefined],
  [
    'a change to the private containerd',
    { containerRuntimeEndpoint: '' },
    ENDPOINT,
    `${UNUSABLE}keep --container-runtime-endpoint ${ENDPOINT}, or choose another --data-dir`,
  ],
  ['a further start with the private containerd', { containerRuntimeEndpoint: '' }, '', undefined],
])('%s in a folder that only the private containerd cannot use', (_, options, former, message) => {
  const start = () => refuseUnusableStart({ dataDir, ...options }, former === undefined ? undefined : record(former));
  if (message === undefined) expect(start).not.toThrow();
  else expect(start).toThrow(message);
});

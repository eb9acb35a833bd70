import { CoreV1Api, KubeConfig, makeInformer, type V1Pod } from '@kubernetes/client-node';
import { expect } from 'vitest';
import { runCommandOk } from '../../src/platform/processes.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { isReady } from '../support/pods.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';
import { untilLine } from '../support/until-line.ts';

const session = async (interpreter: string, file: string): Promise<string[]> =>
  (await runCommandOk(interpreter, [`${import.meta.dirname}/${file}`, lifepod.kubeconfig, lifepod.namespace]))
    .trim()
    .split('\n');

test('the Python client lists, watches, reads logs, runs exec, patches, receives the errors of upstream, and deletes', async () => {
  expect(await session('/usr/bin/python3', 'session.py')).toEqual([
    "nodes ['node-1'] v1.33.0",
    'version v1.33.0',
    "phases ['Pending', 'Running']",
    'log level 3',
    'exec hello',
    'patch patched',
    'error 409 Conflict',
    'error 404 Not Found',
    'error 409 Conflict',
    'event Scheduled',
    'event Started',
    'deleted python',
  ]);
});

test('the Ruby client kubeclient discovers kinds, watches, reads logs, updates, reads pages, and deletes', async () => {
  expect(await session('/usr/bin/ruby', 'session.rb')).toEqual([
    'kinds true',
    'nodes ["node-1"]',
    'ended Failed',
    'exit 3 Error',
    'log from ruby',
    'update 2',
    'conflict 409',
    'patch 4',
    'pages one page-2 page-3 page-4 page-5',
    'missing 404',
  ]);
});

test('an informer of the JavaScript client reports each addition, change and deletion, and keeps a correct list', async () => {
  const config = new KubeConfig();
  config.loadFromFile(lifepod.kubeconfig);
  const api = config.makeApiClient(CoreV1Api);
  const { namespace } = lifepod;
  await lifepod.apply(pod('before'));
  await record.until('before', isReady);
  const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/pods`, () =>
    api.listNamespacedPod({ namespace }),
  );
  const seen: string[] = [];
  const heard = new EventTarget();
  for (const kind of ['add', 'update', 'delete'] as const)
    informer.on(kind, ({ metadata, status }: V1Pod) => {
      seen.push(`${kind} ${metadata?.name} ${status?.phase}`);
      heard.dispatchEvent(new Event('change'));
    });
  const until = async (start: string): Promise<void> => {
    while (!seen.some((line) => line.startsWith(start)))
      await new Promise((resolve) => heard.addEventListener('change', resolve, { once: true }));
  };
  await informer.start();
  try {
    await until('add before Running');
    await lifepod.apply(pod('after'));
    await until('add after Pending');
    await until('update after Running');
    await lifepod.kubectlOk('delete', 'pod', 'before');
    await until('delete before');
    expect(informer.list().map(({ metadata }) => metadata?.name)).toEqual(['after']);
    expect(informer.get('after', namespace)?.status?.podIP).toMatch(/^10\./);
  } finally {
    await informer.stop();
  }
});

test('kubetail follows the logs of several Pods in one output', async () => {
  for (const name of ['tail-a', 'tail-b'])
    await lifepod.apply(pod(name, { app: [{ name: 'app', script: `echo line of ${name}; ${WAIT}` }] }));
  await Promise.all(['tail-a', 'tail-b'].map((name) => record.until(name, isReady)));
  const env = { ...process.env, KUBECONFIG: lifepod.kubeconfig, HOME: lifepod.dataDir };
  // By default, bash 5.2 replaces `&` in the replacement of a pattern by the match, which breaks the commands of kubetail.
  const script = 'shopt -u patsub_replacement 2>/dev/null; . "$(command -v kubetail)" "$@"';
  // `tail` buffers its output by blocks if it does not write to a terminal.
  const lines = await untilLine(
    'stdbuf',
    [
      '-oL',
      'bash',
      '-c',
      script,
      'kubetail',
      'tail',
      '-n',
      lifepod.namespace,
      '--colored-output',
      'false',
      '--since',
      '1h',
    ],
    env,
    (_line, all) => ['tail-a', 'tail-b'].every((name) => all.some((line) => line.includes(`line of ${name}`))),
  );
  expect(lines.join('\n')).toContain('[tail-a] line of tail-a');
});

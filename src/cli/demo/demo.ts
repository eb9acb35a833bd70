/**
 * `lifepod demo`: runs examples/01-init-containers with real containers, in a scratch folder, on a free port and free networks.
 * Prints the life of the Pod as the API reports it, then cleans up, even after Ctrl+C.
 */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chooseFreeRanges } from '../../engine/free-ranges.ts';
import { kubeconfigPath } from '../../engine/settings.ts';
import { UserError } from '../../platform/files.ts';
import { findProgram } from '../../platform/processes.ts';
import { makeBusyboxArchive } from '../../runtime/images/local-images.ts';
import { startDetached } from '../detach.ts';
import { down } from '../down.ts';
import { loadImages } from '../image.ts';
import { createDemoKubectl, type DemoKubectl } from './demo-kubectl.ts';
import { watchLife } from './demo-life.ts';

const EXAMPLE = fileURLToPath(new URL('../../../examples/01-init-containers', import.meta.url));
const IMAGE = 'busybox:1.28';
const REGISTRY = 'https://registry-1.docker.io/v2/';
const REGISTRY_MILLIS = 2_000;
/** The grace period with which the demo deletes the Pod. The app ignores SIGTERM, so it is killed at the end of the grace period. */
const GRACE_SECONDS = 2;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

export async function demo(): Promise<void> {
  const begin = performance.now();
  const stopping = new AbortController();
  const interrupt = (): void => {
    say('stopping and cleaning up');
    stopping.abort(new UserError('the demo was stopped'));
  };
  // The handlers stay installed during the cleanup, so that a second Ctrl+C does not interrupt it.
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-demo-')));
  try {
    await startEngine(dataDir);
    stopping.signal.throwIfAborted();
    await provideImage(dataDir);
    stopping.signal.throwIfAborted();
    await showLife(dataDir, stopping.signal);
  } finally {
    say('\n$ lifepod down');
    await down(dataDir);
    rmSync(dataDir, { recursive: true, force: true });
  }
  say(`removed ${dataDir}; the demo took ${((performance.now() - begin) / 1000).toFixed(1)} s`);
}

async function startEngine(dataDir: string): Promise<void> {
  // Without eviction thresholds for the disk, the demo also works on a machine whose disk is nearly full.
  const evictionHard = 'memory.available<100Mi';
  say(`$ lifepod up --detach --data-dir ${dataDir} --port 0 --eviction-hard '${evictionHard}'`);
  const { server, nodeName, startMillis } = await startDetached({
    dataDir,
    port: 0,
    evictionHard,
    ...(await chooseFreeRanges()),
  });
  say(`the engine is ready after ${(startMillis / 1000).toFixed(1)} s: ${server}, node ${nodeName}`);
}

/** If the registry cannot be reached, builds the image from the machine's busybox-static and loads it. Otherwise, the node pulls it. */
async function provideImage(dataDir: string): Promise<void> {
  const reached = await fetch(REGISTRY, { signal: AbortSignal.timeout(REGISTRY_MILLIS) }).then(
    (response) => response.status === 200 || response.status === 401,
    () => false,
  );
  if (reached) return;
  say(`\nno image registry can be reached: building ${IMAGE} from this machine's busybox-static`);
  const archive = join(dataDir, 'busybox.tar');
  await makeBusyboxArchive(archive, { reference: `docker.io/library/${IMAGE}` });
  await loadImages(dataDir, [archive]);
}

async function showLife(dataDir: string, signal: AbortSignal): Promise<void> {
  const kubectl: DemoKubectl = createDemoKubectl(kubeconfigPath(dataDir), findProgram('kubectl'), say, signal);
  const life = await watchLife(kubeconfigPath(dataDir), 'myapp-pod', say, signal);
  try {
    await kubectl.apply(join(EXAMPLE, 'myapp.yaml'));
    await life.until('the first init container runs', ({ pod }) =>
      (pod.status?.initContainerStatuses ?? []).some(({ state }) => state?.running !== undefined),
    );
    await kubectl.logs('myapp-pod', 'init-myservice');
    await kubectl.apply(join(EXAMPLE, 'services.yaml'));
    await life.until('the Pod is Ready', ({ status, ready }) => status === 'Running' && ready === '1/1');
    await kubectl.logs('myapp-pod', 'myapp-container');
    await kubectl.delete('myapp-pod', GRACE_SECONDS);
    await life.until('the Pod is gone', ({ gone }) => gone);
  } finally {
    life.close();
  }
}

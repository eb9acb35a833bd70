/**
 * `lifepod demo`: runs examples/01-init-containers with real containers, in a scratch folder, on a free port and free networks.
 * Prints the life of the Pod as the API reports it, then cleans up, even after Ctrl+C.
 */
import { realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { refuseUnusablePath } from '../../engine/data-folder/new-folder.ts';
import { chooseFreeRanges } from '../../engine/free-ranges.ts';
import { checkMachine } from '../../engine/machine-checks.ts';
import { kubeconfigPath, readEngineRecord } from '../../engine/settings.ts';
import { realFolder, UserError } from '../../platform/files.ts';
import { findProgram } from '../../platform/processes.ts';
import { makeBusyboxArchive } from '../../runtime/images/local-images.ts';
import { startDetached } from '../detached/detach.ts';
import { down } from '../down.ts';
import { loadImages } from '../image.ts';
import { createTemporaryFolder } from '../make-image/temporary-folder.ts';
import { printLine } from '../progress/standard-output.ts';
import { SIGNAL_CODES } from '../signals.ts';
import { readyText } from '../up.ts';
import { createDemoKubectl, type DemoKubectl } from './demo-kubectl.ts';
import { watchLife } from './demo-life.ts';

const EXAMPLE = fileURLToPath(new URL('../../../examples/01-init-containers', import.meta.url));
const IMAGE = 'busybox:1.28';
const REGISTRY = 'https://registry-1.docker.io/v2/';
const REGISTRY_MILLIS = 2_000;
/** Short, so that an interrupted demo ends soon even if an init container ignores SIGTERM. */
const GRACE_SECONDS = 2;

const say = printLine;

export async function demo(): Promise<void> {
  const begin = performance.now();
  const stopping = new AbortController();
  let exitCode: number | undefined;
  let isCleaning = false;
  // The handlers remain installed during the cleanup, so that a second Ctrl+C does not interrupt the cleanup.
  for (const [name, code] of Object.entries(SIGNAL_CODES)) {
    process.on(name, () => {
      if (isCleaning || stopping.signal.aborted) return;
      say('stopping and cleaning up');
      exitCode = code;
      stopping.abort(new UserError('the demo was stopped'));
    });
  }
  checkMachine(() => true);
  refuseUnusablePath(realFolder(tmpdir()), 'set TMPDIR to another folder');
  const dataDir = realpathSync(createTemporaryFolder('lifepod-demo-'));
  try {
    await startEngine(dataDir, stopping.signal);
    stopping.signal.throwIfAborted();
    await provideImage(dataDir, stopping.signal);
    stopping.signal.throwIfAborted();
    await showLife(dataDir, stopping.signal);
  } catch (error) {
    // After an interruption, the error only shows which step was interrupted.
    if (exitCode === undefined) throw error;
    process.exitCode = exitCode;
  } finally {
    isCleaning = true;
    await cleanUp(dataDir, exitCode === undefined ? say : () => undefined);
  }
  if (exitCode === undefined)
    say(`removed ${dataDir}; the demo took ${((performance.now() - begin) / 1000).toFixed(1)} s`);
}

/** Ends the engine, and removes the data folder. A failed first start has removed its engine record, and needs no `lifepod down`. */
async function cleanUp(dataDir: string, report: (line: string) => void): Promise<void> {
  if (readEngineRecord(dataDir) !== undefined) {
    report('\n$ lifepod down');
    await down(dataDir, report, { gracePeriodSeconds: GRACE_SECONDS, signal: new AbortController().signal });
  }
  rmSync(dataDir, { recursive: true, force: true });
}

async function startEngine(dataDir: string, signal: AbortSignal): Promise<void> {
  // Without eviction thresholds for the disk, the demo also works on a machine whose disk is nearly full.
  const evictionHard = 'memory.available<100Mi';
  const ranges = await chooseFreeRanges();
  const network = `--pod-cidr ${ranges.podCidr} --service-cidr ${ranges.serviceCidr}`;
  say(`$ lifepod up --detach --data-dir ${dataDir} --port 0 ${network} --eviction-hard '${evictionHard}'`);
  const options = { dataDir, port: 0, evictionHard, ...ranges };
  say(readyText(await startDetached(options, signal)));
}

/** Builds and loads the image if the registry cannot be reached. Otherwise, the node pulls the image. */
async function provideImage(dataDir: string, signal: AbortSignal): Promise<void> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(REGISTRY_MILLIS)]);
  const reached = await fetch(REGISTRY, { signal: limited }).then(
    (response) => response.status === 200 || response.status === 401,
    () => false,
  );
  signal.throwIfAborted();
  if (reached) return;
  say(`\nno image registry can be reached: building ${IMAGE} from this machine's busybox-static`);
  const archive = join(dataDir, 'busybox.tar');
  await makeBusyboxArchive(archive, { reference: `docker.io/library/${IMAGE}` });
  signal.throwIfAborted();
  // An interrupt does not end the load. The demo then prints nothing about the load.
  const print = (line: string): void => (signal.aborted ? undefined : say(line));
  await loadImages(dataDir, [archive], () => undefined, print);
}

async function showLife(dataDir: string, signal: AbortSignal): Promise<void> {
  const print = (line: string): void => (signal.aborted ? undefined : say(line));
  const kubectl: DemoKubectl = createDemoKubectl(kubeconfigPath(dataDir), findProgram('kubectl'), print, signal);
  const life = await watchLife(kubeconfigPath(dataDir), 'myapp-pod', print, signal);
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

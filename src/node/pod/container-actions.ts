import type { PullProgress } from '../../api/core/v1/pod/status/pull-progress.ts';
import type { Container, EphemeralContainer, Pod } from '../../api/generated/types.ts';
import type { Action, ImageState } from '../../lifecycle/types.ts';
import type { Timers } from '../../platform/platform.ts';
import { type ContainerRuntime, type ImageInfo, OutcomeUnknownError } from '../../runtime/runtime.ts';
import { containersByName } from '../container/by-name.ts';
import type { EnvironmentSource } from '../container/configuration-source.ts';
import { containerConfig, type PodEnvironment, sandboxConfig } from '../container/container-config.ts';
import { checkImageName, pullFailure } from '../images/failures.ts';
import type { PulledImage } from '../images/puller.ts';
import { ActionError, failsWith, messageOf } from './action-error.ts';
import type { PodLimits } from './pod-limits.ts';
import type { Outcome } from './worker/ports.ts';

export interface ContainerPorts {
  timers: Timers;
  runtime: Pick<ContainerRuntime, 'imageStatus' | 'createContainer' | 'startContainer'>;
  environment: EnvironmentSource;
  /** Creates the files and mounts that the container's configuration refers to. */
  prepareContainer(
    pod: Pod,
    container: Container | EphemeralContainer,
    attempt: number,
    env: PodEnvironment,
    signal: AbortSignal,
  ): Promise<void>;
  /** Rejects with the runtime's messages if the pull fails. */
  pullImage(
    pod: Pod,
    reference: string,
    progress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<PulledImage>;
}

type ActionOf<Kind extends Action['kind']> = Action & { kind: Kind };
type ImageUse = Pick<ActionOf<'checkImage'>, 'container' | 'attempt' | 'image'>;

export interface ContainerActions {
  checkImage(action: ActionOf<'checkImage'>, signal: AbortSignal): Promise<Outcome>;
  pullImage(
    action: ActionOf<'pullImage'>,
    pod: Pod,
    progress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<Outcome>;
  start(action: ActionOf<'startContainer'>, pod: Pod, signal: AbortSignal): Promise<Outcome>;
}

export function createContainerActions(ports: ContainerPorts, limits: PodLimits): ContainerActions {
  const { runtime, timers } = ports;
  /**
   * The images that checks and pulls have found, by ID. The content of an image with a given ID never changes, but the image may be
   * removed.
   */
  const images = new Map<string, ImageInfo>();
  return {
    async checkImage(action, signal) {
      const reference = action.image;
      checkImageName(reference);
      const info = await runtime
        .imageStatus(reference, signal)
        .catch(failsWith('ImageInspectError', (cause) => `Failed to inspect image "${reference}": ${cause}`));
      if (info === undefined && action.mustExist) throw neverPulled(reference);
      if (info === undefined) return absent(action);
      images.set(info.id, info);
      return present(action, info);
    },
    async pullImage(action, pod, progress, signal) {
      const reference = action.image;
      checkImageName(reference);
      const began = timers.now();
      try {
        const { info, millis } = await ports.pullImage(pod, reference, progress, signal);
        images.set(info.id, info);
        return present(action, info, {
          millis,
          withWaitingMillis: timers.now() - began,
          sizeBytes: info.sizeBytes,
        });
      } catch (error) {
        throw error instanceof OutcomeUnknownError ? error : pullFailure(reference, messageOf(error));
      }
    },
    async start(action, pod, signal) {
      const container = containersByName(pod).get(action.container);
      if (container === undefined)
        throw new ActionError('CreateContainerConfigError', `no container ${action.container} in the spec`);
      const [env, info] = await Promise.all([
        ports.environment(pod, container, signal),
        images.get(action.imageId) ?? runtime.imageStatus(action.imageId, signal),
        // An earlier engine may have died after it created the sandbox and before it wrote the limits.
        limits.ensure(pod),
      ]);
      // The image was removed in the meantime. Report it as absent, so that the pull policy applies again.
      if (info === undefined) return absent(action);
      await ports.prepareContainer(pod, container, action.attempt, env, signal);
      const config = containerConfig(
        pod,
        { ...container, image: action.image },
        action.containerKind,
        action.attempt,
        action.backoffSeconds,
        info,
        env,
      );
      if (action.targetId !== undefined) config.targetContainerId = action.targetId;
      const sandbox = sandboxConfig(pod, 0, env);
      const id = await runtime.createContainer(action.sandboxId, sandbox, config, signal).catch((error: unknown) => {
        images.delete(action.imageId);
        return failsWith('CreateContainerError')(error);
      });
      await runtime.startContainer(id, signal).catch(failsWith('RunContainerError'));
      return {};
    },
  };
}

const absent = ({ container, attempt, image }: ImageUse): Outcome => ({
  image: { container, state: { attempt, image, state: 'absent' } },
});

const present = (
  { container, attempt, image }: ImageUse,
  { id }: ImageInfo,
  pulled?: Extract<ImageState, { state: 'present' }>['pulled'],
): Outcome => ({ image: { container, state: { attempt, image, state: 'present', imageId: id, pulled } } });

const neverPulled = (reference: string): ActionError =>
  new ActionError('ErrImageNeverPull', `Container image "${reference}" is not present with pull policy of Never`);

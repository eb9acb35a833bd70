/**
 * Watches the Pods and Jobs of a session: keeps the SessionState up to date, follows the logs of all Pods, and reports when the session is
 * over, or a Pod cannot start or be created.
 *
 * Reads Pods, Jobs and Events in the namespaces of the session, the owners of Pods, and Nodes.
 * Invariants:
 *  1. A Pod or Job belongs to the session if it, or a controller above it, has the label of the session.
 *  2. The only timer is that of giveUp(), for Pods that cannot start and Jobs that cannot create Pods.
 */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { CoreV1Event, DaemonSet, Job, Node, Pod } from '../../api/generated/types.ts';
import { DAEMON_SETS, EVENTS, JOBS, NODES, PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createInformer, type Informer } from '../../client/informer.ts';
import type { InformerHandlers as Handlers } from '../../client/local-copy.ts';
import { type KubeObject, type ResourceRef, uidOf } from '../../machinery/meta.ts';
import type { Platform, Timer } from '../../platform/platform.ts';
import type { Hints } from '../hints.ts';
import { controllerOf } from '../why/subject.ts';
import { isRefusal, type Refusal, refusalOf, wantsPods } from '../workloads/refused-pods.ts';
import { createRootSearch } from '../workloads/root-owner.ts';
import { type ContainerRuns, NO_RUNS, withRuns } from './container-runs.ts';
import { noteCut } from './cut/cut-objects.ts';
import type { FindKind } from './discovery.ts';
import { createNotices, type Notices } from './notices.ts';
import { endsByItself, isEndless, SESSION_LABEL } from './plan.ts';
import { isAboutPreparation, PREPARATION_EVENTS } from './preparation.ts';
import type { SessionLogs } from './session-logs.ts';
import {
  type Failure,
  giveUp,
  isOver,
  type Obstructed,
  type Seen,
  type SessionState,
  withHint,
  withObstacle,
  withRefusal,
} from './session-state.ts';

export interface WatchedSession {
  created(object: KubeObject): void;
  complete(): void;
  state(): SessionState;
  pods(): Pod[];
  /** Resolves with undefined when the session is over, or with a sentence about a Pod or Job that cannot start. */
  readonly over: Promise<string | undefined>;
  /** Resolves when the state contains all changes of Pods until now. */
  settled(): Promise<void>;
}

export interface WatchOptions {
  id: string;
  client: Client;
  findKind: FindKind;
  namespaces: readonly string[];
  /** The kinds of the objects of the manifests. */
  kinds: ReadonlySet<string>;
  logs: Pick<SessionLogs, 'follow'>;
  platform: Platform;
  say(line: string): void;
  hints: Hints;
  /** Called when a Pod has failed by itself, or a Job has failed, after the logs are printed. */
  failed(failure: Failure): void;
  /** Called with the Pods of the session that exist, after each change. */
  changed(pods: readonly Pod[]): void;
  signal: AbortSignal;
}

/** Starts the watches. Resolves with the session when the existing Nodes, Pods, Jobs and warning Events are known. */
export async function watchSession(options: WatchOptions): Promise<WatchedSession> {
  const { client, platform, namespaces, kinds, signal } = options;
  const nodes = createInformer<Node>(client.resource<Node>(NODES), { ...platform, signal }, {});
  const watched = new Watched(options, nodes);
  const follow = <T extends KubeObject>(ref: ResourceRef, handlers: Handlers<T>, selection: object = {}) =>
    namespaces.map((namespace) => {
      const selected = { ...platform, ...selection, namespace, signal };
      return createInformer<T>(client.resource<T>(ref), selected, handlers).synced;
    });
  const seeAll = (kind: 'pods' | 'jobs'): Handlers<KubeObject> => {
    const see = onChange<KubeObject>((object) => watched.see(kind, object, false));
    return { ...see, deleted: (object) => watched.see(kind, object, true) };
  };
  const onChange = <T extends KubeObject>(act: (object: T) => void): Handlers<T> => ({ added: act, updated: act });
  // The Nodes are read first, because the messages about a Pod need its Node.
  await nodes.synced;
  const hasJobs = kinds.has('Job') || kinds.has('CronJob');
  const ofSession = { labelSelector: `${SESSION_LABEL}=${options.id}` };
  await Promise.all([
    ...follow<Pod>(PODS, seeAll('pods')),
    ...(hasJobs ? follow<Job>(JOBS, seeAll('jobs')) : []),
    ...(kinds.has('DaemonSet') ? follow<DaemonSet>(DAEMON_SETS, onChange(watched.idleDaemonSet), ofSession) : []),
    ...PREPARATION_EVENTS.flatMap((fieldSelector) => follow(EVENTS, onChange(watched.hear), { fieldSelector })),
  ]);
  return {
    created: (object) => watched.created(object),
    complete: () => watched.complete(),
    state: () => watched.state,
    pods: () => watched.existingPods(),
    over: watched.over.promise,
    async settled() {
      // A watch reports the revision of this list only with its next bookmark, up to a minute later, so the items of the list are used.
      for (const namespace of namespaces) {
        const { items } = await client.resource<Pod>(PODS).list({ namespace });
        for (const pod of items) watched.see('pods', pod, false);
      }
      await watched.decided();
    },
  };
}

const versionOf = ({ metadata }: KubeObject): number => Number(metadata.resourceVersion);

class Watched {
  readonly over = Promise.withResolvers<string | undefined>();
  readonly #options: WatchOptions;
  readonly #nodes: Pick<Informer<Node>, 'get' | 'list'>;
  readonly #ending = new Set<string>();
  readonly #pods = new Map<string, Seen<Pod>>();
  readonly #jobs = new Map<string, Seen<Job>>();
  readonly #cut = new Set<string>();
  /** Why workloads could not create Pods, by UID. Only workloads that have created no Pod since. */
  readonly #refusals = new Map<string, Refusal>();
  readonly #rootOf: ReturnType<typeof createRootSearch>;
  /** The pending decisions on whether an object belongs to the session, and the notices that wait for a record or a log. */
  readonly #undecided = new Set<Promise<void>>();
  #isComplete = false;
  #hasEndless = false;
  #obstructed: Obstructed = new Map();
  /** Facts from earlier statuses of each Pod, by its UID. */
  readonly #runs = new Map<string, ContainerRuns>();
  /** The last Event about the preparation of a Pod, by its UID. The Pod may not have been seen yet. */
  readonly #events = new Map<string, CoreV1Event>();
  readonly #notices: Notices;
  #timer: Timer | undefined;

  constructor(options: WatchOptions, nodes: Pick<Informer<Node>, 'get' | 'list'>) {
    this.#options = options;
    this.#nodes = nodes;
    this.#notices = createNotices(options);
    this.#rootOf = createRootSearch({ ...options, isRoot: (object) => this.#hasLabel(object) });
    options.signal.addEventListener('abort', () => this.#timer?.cancel(), { once: true });
  }

  get state(): SessionState {
    return {
      isComplete: this.#isComplete,
      hasEndless: this.#hasEndless,
      ending: this.#ending,
      pods: this.#pods,
      jobs: this.#jobs,
      cut: this.#cut,
    };
  }

  existingPods(): Pod[] {
    return [...this.#pods.values()].filter(({ isGone }) => !isGone).map(({ object }) => object);
  }

  created(object: KubeObject): void {
    if (isEndless(object.kind)) this.#hasEndless = true;
    if (endsByItself(object.kind)) this.#ending.add(uidOf(object));
    this.#notices.idle(object.kind, object);
  }

  readonly idleDaemonSet = (object: DaemonSet): void => this.#notices.idle('DaemonSet', object);

  complete(): void {
    this.#isComplete = true;
    this.#look();
  }

  async decided(): Promise<void> {
    while (this.#undecided.size > 0) await Promise.all(this.#undecided);
  }

  see(kind: 'pods' | 'jobs', object: KubeObject, isGone: boolean): void {
    const known: Map<string, Seen<KubeObject>> = kind === 'pods' ? this.#pods : this.#jobs;
    const latest = known.get(uidOf(object))?.object;
    // settled() may have read a later version than the one that the watch reports now.
    if (!isGone && latest !== undefined && versionOf(object) < versionOf(latest)) return;
    if (latest !== undefined || this.#hasLabel(object)) {
      this.#put(kind, object, isGone);
      return;
    }
    const controller = controllerOf(object);
    if (controller === undefined) return;
    const decided = this.#rootOf(controller, object.metadata.namespace).then((root) => {
      // The decision for a later version of the object may have come first.
      if (root !== undefined && !known.has(uidOf(object))) this.#put(kind, object, isGone);
    });
    this.#await(decided);
  }

  #await(work: Promise<void>): void {
    const pending = work.finally(() => this.#undecided.delete(pending));
    this.#undecided.add(pending);
  }

  readonly hear = (event: CoreV1Event): void => {
    const { uid } = event.involvedObject;
    if (uid === undefined) return;
    if (isRefusal(event)) this.#await(this.#hearRefusal(event, uid));
    const seen = this.#pods.get(uid);
    if (seen?.isGone === false) this.#notices.unready(seen.object, event);
    if (!isAboutPreparation(event, this.#events.get(uid))) return;
    this.#events.set(uid, event);
    if (seen !== undefined) this.#noteObstacle(seen.object, seen.isGone);
    this.#look();
  };

  #hasLabel({ metadata }: KubeObject): boolean {
    return metadata.labels?.[SESSION_LABEL] === this.#options.id;
  }

  async #hearRefusal(event: CoreV1Event, uid: string): Promise<void> {
    const { apiVersion = '', kind = '', name = '', namespace = '' } = event.involvedObject;
    const root = await this.#rootOf({ apiVersion, kind, name, uid }, namespace);
    if (root === undefined) return;
    const refusal = refusalOf(event, this.#options.hints);
    this.#notices.refusal(root, namespace, refusal);
    if (this.#podsOf(uid).length === 0) this.#refusals.set(uid, refusal);
    this.#noteRefusal(uid);
    this.#look();
  }

  #podsOf(uid: string): Pod[] {
    return this.existingPods().filter((pod) => controllerOf(pod)?.uid === uid);
  }

  /** Only a Job of the manifests can end the session. Jobs of a CronJob have no label. */
  #noteRefusal(uid: string | undefined): void {
    const job = this.#jobs.get(uid ?? '');
    if (uid === undefined || job === undefined) return;
    const isWaiting = !job.isGone && this.#hasLabel(job.object) && wantsPods(job.object);
    const refusal = isWaiting ? this.#refusals.get(uid) : undefined;
    this.#obstructed = withRefusal(this.#obstructed, job.object, refusal, this.#options.platform.timers.now());
  }

  #put(kind: 'pods' | 'jobs', object: KubeObject, isGone: boolean): void {
    const before = (kind === 'jobs' ? this.#jobs : this.#pods).get(uidOf(object));
    noteCut(this.#cut, kind, before, { object, isGone });
    if (kind === 'jobs') {
      const job = object as Job;
      this.#jobs.set(uidOf(job), { object: job, isGone });
      this.#noteRefusal(uidOf(job));
      if (!isGone) this.#await(this.#notices.jobFailure(job, this.#podsOf(uidOf(job))));
    } else {
      const pod = object as Pod;
      this.#pods.set(uidOf(pod), { object: pod, isGone });
      const owner = controllerOf(pod)?.uid;
      this.#refusals.delete(owner ?? '');
      this.#noteRefusal(owner);
      if (!isGone) void this.#options.logs.follow(pod);
      this.#runs.set(uidOf(pod), withRuns(this.#runs.get(uidOf(pod)) ?? NO_RUNS, pod));
      this.#noteObstacle(pod, isGone);
      if (!isGone) this.#notices.gates(pod);
      if (!isGone) this.#noteFailures({ object: pod, isGone });
      this.#options.changed(this.existingPods());
    }
    this.#look();
  }

  #noteObstacle(pod: Pod, isGone: boolean): void {
    const { platform, hints } = this.#options;
    const node = this.#nodes.get(undefined, pod.spec?.nodeName ?? '');
    this.#notices.entries(pod, node);
    const [runs, event] = [this.#runs.get(uidOf(pod)), this.#events.get(uidOf(pod))];
    const facts = { hints, runs, node, nodes: this.#nodes.list(), otherPods: this.existingPods(), event };
    this.#obstructed = withObstacle(this.#obstructed, pod, isGone, platform.timers.now(), facts);
    const now = this.#obstructed.get(uidOf(pod));
    // A final obstacle ends the session, which then reports the obstacle.
    if (now === undefined || now.obstacle.isFinal) return;
    this.#notices.trouble(pod, now.obstacle.cause, `${now.title} waits: ${withHint(now.obstacle)}`);
  }

  #noteFailures(seen: Seen<Pod>): void {
    const { object: pod } = seen;
    this.#await(this.#notices.failure(seen));
    if (hasEnded(pod) || pod.metadata.deletionTimestamp !== undefined) return;
    this.#await(this.#notices.crashLoops(pod, this.#runs.get(uidOf(pod)) ?? NO_RUNS));
  }

  #look(): void {
    const { timers } = this.#options.platform;
    if (this.#options.signal.aborted) return;
    if (isOver(this.state)) this.over.resolve(undefined);
    // An obstacle that a changed sandbox causes ends without a change of the Pod, when the new sandbox has lived for INTACT_MILLIS.
    for (const [uid, { object, isGone }] of this.#pods)
      if (this.#obstructed.has(uid)) this.#noteObstacle(object, isGone);
    const verdict = giveUp(this.#obstructed, timers.now());
    this.#timer?.cancel();
    this.#timer = undefined;
    if (verdict === undefined) return;
    if ('because' in verdict) this.over.resolve(verdict.because);
    else this.#timer = timers.at(verdict.askAt, () => this.#look());
  }
}

/** Manifests of the tests: Pods whose containers run a shell line of busybox. */

export interface ScriptedContainer {
  name: string;
  script: string;
  [field: string]: unknown;
}

export const container = ({ name, script, ...rest }: ScriptedContainer): Record<string, unknown> => ({
  name,
  image: 'busybox:1.28',
  command: ['sh', '-c', script],
  ...rest,
});

/** Runs until SIGTERM, then exits at once. */
export const WAIT = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';

/** Returns a Pod manifest; by default with one app container that waits for SIGTERM. */
export function pod(
  name: string,
  options: {
    init?: ScriptedContainer[];
    app?: ScriptedContainer[];
    defer?: ScriptedContainer[];
    spec?: Record<string, unknown>;
    labels?: Record<string, string>;
  } = {},
): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: options.labels },
    spec: {
      initContainers: options.init?.map(container),
      containers: (options.app ?? [{ name: 'app', script: WAIT }]).map(container),
      deferContainers: options.defer?.map(container),
      ...options.spec,
    },
  };
}

/** A folder that the containers of a Pod share, mounted at /work. */
export const SHARED = {
  volumes: [{ name: 'work', emptyDir: {} }],
  mount: { volumeMounts: [{ name: 'work', mountPath: '/work' }] },
};

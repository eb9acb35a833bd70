/** Manifests of Pods whose containers run a shell script in the image busybox. */

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

export const WAIT = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';

/** By default, the Pod has one app container that runs until SIGTERM. */
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

/** The fields of a Pod's spec (`volumes`) and of its containers (`mount`) for a folder that the containers share at /work. */
export const SHARED = {
  volumes: [{ name: 'work', emptyDir: {} }],
  mount: { volumeMounts: [{ name: 'work', mountPath: '/work' }] },
};

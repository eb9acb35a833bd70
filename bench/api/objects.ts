/** Pods and ConfigMaps of the size that users write. */

export const NAMESPACE = 'default';
export const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
export const CONFIG_MAPS = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
export const SERVICE_ACCOUNTS = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`;
export const TEMPLATE = 'template';
/** One Pod in ten has the label `color` with this value. */
export const RARE_COLOR = 'color-7';

export const serviceAccount = (): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } });

export const pod = (name: string, index = 0): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: 'web', tier: 'front', color: `color-${index % 10}` }, annotations: { team: 'a' } },
    spec: {
      containers: [
        {
          name: 'app',
          image: 'registry.example/web:1.2.3',
          command: ['web', '--listen', ':8080'],
          env: [
            { name: 'MODE', value: 'production' },
            { name: 'LEVEL', value: 'info' },
          ],
          ports: [{ name: 'http', containerPort: 8080 }],
          resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '128Mi' } },
          readinessProbe: { httpGet: { path: '/ready', port: 'http' }, periodSeconds: 5 },
          volumeMounts: [{ name: 'data', mountPath: '/data' }],
        },
      ],
      volumes: [{ name: 'data', emptyDir: {} }],
    },
  });

export const configMap = (name: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, labels: { app: 'web' } },
    data: { 'settings.yaml': 'mode: production\n'.repeat(30), level: 'info' },
  });

let made = 0;
export const newPod = (): [string, string, string] => ['POST', PODS, pod(`pod-${made++}`, made)];
export const newConfigMap = (): [string, string, string] => ['POST', CONFIG_MAPS, configMap(`map-${made++}`)];

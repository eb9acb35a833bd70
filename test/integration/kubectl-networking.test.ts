import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type KubectlFixture, startKubectlFixture } from './kubectl-fixture.ts';

let fixture: KubectlFixture;
beforeAll(async () => {
  fixture = await startKubectlFixture();
});
afterAll(() => fixture?.close());

const apiVersion = 'networking.k8s.io/v1';

describe('kubectl create ingress', () => {
  test('creates rules, a default, certificates and annotations, and describe shows them', async () => {
    const { ok, get } = fixture;
    await ok(
      ...['create', 'ingress', 'shop', '--class=other', '--default-backend=fallback:http', '--annotation=a=b'],
      ...['--rule=shop.example.com/cart*=cart:8080,tls=shop-cert', '--rule=*.example.com/=web:http'],
    );
    expect((await get('ingress/shop')).spec).toEqual({
      ingressClassName: 'other',
      defaultBackend: { service: { name: 'fallback', port: { name: 'http' } } },
      tls: [{ hosts: ['shop.example.com'], secretName: 'shop-cert' }],
      rules: [
        {
          host: 'shop.example.com',
          http: {
            paths: [
              { path: '/cart', pathType: 'Prefix', backend: { service: { name: 'cart', port: { number: 8080 } } } },
            ],
          },
        },
        {
          host: '*.example.com',
          http: {
            paths: [{ path: '/', pathType: 'Exact', backend: { service: { name: 'web', port: { name: 'http' } } } }],
          },
        },
      ],
    });
    expect(await ok('get', 'ing')).toMatch(/^shop +other +shop\.example\.com,\*\.example\.com +80, 443 +\d+s$/m);
    const described = await ok('describe', 'ingress', 'shop');
    expect(described).toMatch(/^Ingress Class: +other$/m);
    expect(described).toMatch(/shop-cert terminates shop\.example\.com/);
    expect(described).toMatch(/\/cart +cart:8080/);
  });

  test('gets the default class', async () => {
    const { ok, get, apply } = fixture;
    await apply({
      apiVersion,
      kind: 'IngressClass',
      metadata: { name: 'usual', annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } },
      spec: { controller: 'example.com/controller', parameters: { kind: 'ConfigMap', name: 'settings' } },
    });
    await ok('create', 'ingress', 'plain', '--rule=/=web:80');
    expect((await get('ingress/plain')).spec.ingressClassName).toBe('usual');
    expect(await ok('get', 'ingressclasses')).toMatch(/^usual +example\.com\/controller +ConfigMap\/settings +\d+s$/m);
    expect(await ok('describe', 'ingressclass', 'usual')).toMatch(/^Controller: +example\.com\/controller$/m);
  });

  test('is refused with an invalid host and port', async () => {
    const error = await fixture.refused(['create', 'ingress', 'bad', '--rule=*.*.com/=web:70000']);
    expect(error).toContain(
      'spec.rules[0].host: Invalid value: "*.*.com": a wildcard DNS-1123 subdomain must start with',
    );
    expect(error).toContain(
      'spec.rules[0].http.paths[0].backend.service.port.number: Invalid value: 70000: must be between 1 and',
    );
  });

  test('a controller reports an address in the status', async () => {
    const { ok, kubectl, refused } = fixture;
    const patch = (ip: string) => [
      ...['patch', 'ingress', 'plain', '--subresource=status', '--type=merge', '-p'],
      JSON.stringify({ status: { loadBalancer: { ingress: [{ ip, ports: [{ port: 80, protocol: 'TCP' }] }] } } }),
    ];
    expect((await kubectl(patch('192.0.2.7'))).code).toBe(0);
    expect(await ok('get', 'ing', 'plain')).toMatch(/^plain +usual +\* +192\.0\.2\.7 +80 +\d+s$/m);
    expect(await refused(patch('x'))).toContain(
      'status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP',
    );
  });
});

describe('NetworkPolicies', () => {
  const policy = (name: string, spec: object) => ({ apiVersion, kind: 'NetworkPolicy', metadata: { name }, spec });

  test('are applied with defaults and described', async () => {
    const { ok, get, apply } = fixture;
    await apply(
      policy('web', {
        podSelector: { matchLabels: { app: 'web' } },
        ingress: [
          {
            from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }],
            ports: [{ port: 8000, endPort: 8080 }],
          },
        ],
        egress: [{ to: [{ namespaceSelector: {} }] }],
      }),
    );
    expect((await get('netpol/web')).spec).toMatchObject({
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ ports: [{ protocol: 'TCP', port: 8000, endPort: 8080 }] }],
    });
    expect(await ok('get', 'netpol')).toMatch(/^web +app=web +\d+s$/m);
    const described = await ok('describe', 'networkpolicy', 'web');
    expect(described).toMatch(/CIDR: 10\.0\.0\.0\/8/);
    expect(described).toMatch(/Except: 10\.1\.0\.0\/16/);
    expect(described).toMatch(/Policy Types: Ingress, Egress/);
  });

  test('are refused with wrong peers, and warned about with ambiguous ranges', async () => {
    const { refused, kubectl } = fixture;
    const bad = policy('bad', {
      podSelector: {},
      ingress: [{ from: [{}], ports: [{ endPort: 9 }] }],
      policyTypes: ['Both'],
    });
    const error = await refused(['create', '-f', '-'], JSON.stringify(bad));
    expect(error).toContain('spec.ingress[0].from[0]: Required value: must specify a peer');
    expect(error).toContain('may not be specified when `port` is not specified');
    expect(error).toContain('spec.policyTypes[0]: Unsupported value: "Both": supported values: "Ingress", "Egress"');
    const odd = policy('odd', { podSelector: {}, egress: [{ to: [{ ipBlock: { cidr: '10.0.0.1/8' } }] }] });
    const { code, err } = await kubectl(['create', '-f', '-'], { input: JSON.stringify(odd) });
    expect(code).toBe(0);
    expect(err).toContain('spec.egress[0].to[0].ipBlock.cidr: CIDR value "10.0.0.1/8" is ambiguous in this context');
  });
});

test('kubectl explain describes the kinds of networking.k8s.io', async () => {
  const { ok } = fixture;
  for (const path of [
    'netpol.spec.ingress.from.ipBlock',
    'ing.spec.rules.http.paths',
    'ingressclass.spec',
    'servicecidr.spec',
    'ip.spec',
  ])
    expect(await ok('explain', path)).not.toContain('<no description>');
});

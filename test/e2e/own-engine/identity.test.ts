import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { findProgram, runCommandOk } from '../../../src/platform/processes.ts';
import { writeImageArchive } from '../../../src/runtime/images/archive-writer.ts';
import { containerGroup, processesOf } from '../../support/control-groups.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, record, useOwnEngine } from '../../support/own-engine.ts';
import { inPhase, isReady, statusOf, waitsFor } from '../../support/pods.ts';

useOwnEngine({ options: ['--allowed-unsafe-sysctls', 'kernel.msg*,net.core.somaxconn'] });

const inside = (name: string, container: string, script: string): Promise<string> =>
  lifepod.execOk(name, '-c', container, '--', 'sh', '-c', script);
/** Returns the values by name, with single spaces. */
const statusLines = (text: string): Record<string, string> =>
  Object.fromEntries(
    text.split('\n').flatMap((line) => {
      const [, name, value] = /^(\w+):\s*(.*?)\s*$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, (value ?? '').replaceAll(/\s+/g, ' ')]];
    }),
  );
const processOf = async (name: string, container: string) =>
  statusLines(await inside(name, container, 'cat /proc/self/status'));
const host = statusLines(readFileSync('/proc/self/status', 'utf8'));
const waiting = (name: string, securityContext: object, more: object = {}) => ({
  name,
  script: WAIT,
  securityContext,
  ...more,
});

/** Bits in a capability mask; see capabilities(7). */
const NET_BIND_SERVICE = 1n << 10n;
const NET_ADMIN = 1n << 12n;
const mask = (bits: bigint): string => bits.toString(16).padStart(16, '0');

describe('security contexts', () => {
  beforeAll(async () => {
    await lifepod.apply(
      pod('users', {
        app: [
          waiting('plain', {}),
          waiting('strict', {
            runAsUser: 1500,
            runAsGroup: 2500,
            runAsNonRoot: true,
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
          }),
          waiting('more', { runAsUser: 0, capabilities: { add: ['NET_ADMIN'] } }),
          waiting('root', { runAsUser: 0, runAsNonRoot: false, seccompProfile: { type: 'Unconfined' } }),
          waiting('master', { runAsUser: 0, privileged: true }),
          waiting('profiled', {
            seccompProfile: { type: 'Localhost', localhostProfile: 'profiles/no-mkdir.json' },
          }),
        ],
        spec: {
          securityContext: {
            runAsUser: 1000,
            runAsGroup: 2000,
            supplementalGroups: [3000],
            fsGroup: 4000,
            seccompProfile: { type: 'RuntimeDefault' },
            sysctls: [
              { name: 'net.ipv4.ip_unprivileged_port_start', value: '81' },
              { name: 'kernel.shm_rmid_forced', value: '1' },
              { name: 'kernel/msgmax', value: '65537' },
              { name: 'net.core.somaxconn', value: '2049' },
            ],
          },
        },
      }),
    );
    // The container `profiled` waits until its seccomp profile exists.
    await record.until('users', waitsFor('profiled', 'CreateContainerError', 'CreateContainerConfigError'));
    const folder = join(lifepod.dataDir, 'seccomp', 'profiles');
    mkdirSync(folder, { recursive: true });
    const syscalls = [{ names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO', errnoRet: 38 }];
    writeFileSync(join(folder, 'no-mkdir.json'), JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW', syscalls }));
    await record.until('users', isReady);
  });

  test('containers have the user, groups and seccomp profile of the Pod', async () => {
    expect(await processOf('users', 'plain')).toMatchObject({
      Uid: '1000 1000 1000 1000',
      Gid: '2000 2000 2000 2000',
      Groups: '2000 3000 4000',
      CapEff: mask(0n),
      NoNewPrivs: '0',
      Seccomp: '2',
    });
  });

  test('the security context of a container overrides that of the Pod, and can prevent new privileges', async () => {
    const found = await processOf('users', 'strict');
    expect(found).toMatchObject({
      Uid: '1500 1500 1500 1500',
      Gid: '2500 2500 2500 2500',
      Groups: '2500 3000 4000',
      CapBnd: mask(NET_BIND_SERVICE),
      NoNewPrivs: '1',
      Seccomp: '2',
    });
    expect(await inside('users', 'strict', 'touch /x 2>&1 || true')).toContain('Read-only file system');
  });

  test('root in a container has the default capabilities, masked paths, and no seccomp profile if it is Unconfined', async () => {
    const found = await processOf('users', 'root');
    expect(found).toMatchObject({ Uid: '0 0 0 0', Gid: '2000 2000 2000 2000', NoNewPrivs: '0', Seccomp: '0' });
    expect(found['CapEff']).toBe('00000000a80425fb');
    const script = 'wc -c < /proc/interrupts; touch /proc/sys/kernel/panic 2>&1 || true';
    expect(await inside('users', 'root', script)).toBe('0\ntouch: /proc/sys/kernel/panic: Read-only file system\n');
  });

  test('an added capability extends the default capabilities', async () => {
    const usual = BigInt(`0x${(await processOf('users', 'root'))['CapEff']}`);
    expect(await processOf('users', 'more')).toMatchObject({ CapEff: mask(usual | NET_ADMIN), Seccomp: '2' });
  });

  test('a privileged container has all capabilities of the runtime', async () => {
    const found = await processOf('users', 'master');
    expect(found).toMatchObject({ CapEff: host['CapEff'], Seccomp: '0' });
    expect(await inside('users', 'master', 'echo 1 > /proc/sys/net/ipv4/ip_forward && ls /dev/kmsg')).toBe(
      '/dev/kmsg\n',
    );
  });

  test('a Localhost seccomp profile of the node is enforced', async () => {
    expect(await inside('users', 'profiled', 'mkdir /tmp/x 2>&1 || true')).toContain('Function not implemented');
  });

  test('the sysctls of the Pod are set, including unsafe ones that the node allows', async () => {
    const names = [
      'net/ipv4/ip_unprivileged_port_start',
      'kernel/shm_rmid_forced',
      'kernel/msgmax',
      'net/core/somaxconn',
    ];
    const files = names.map((name) => `/proc/sys/${name}`).join(' ');
    expect(await inside('users', 'plain', `cat ${files}`)).toBe('81\n1\n65537\n2049\n');
  });
});

test('init and defer containers have the seccomp profile of the Pod or their own', async () => {
  const script = 'grep ^Seccomp: /proc/self/status';
  const seccompProfile = { type: 'Unconfined' };
  await lifepod.apply(
    pod('profiles', {
      init: [{ name: 'first', script, securityContext: { seccompProfile } }],
      app: [{ name: 'app', script: 'true' }],
      defer: [
        { name: 'last', script },
        { name: 'very-last', script, securityContext: { seccompProfile } },
      ],
      spec: { restartPolicy: 'Never', securityContext: { seccompProfile: { type: 'RuntimeDefault' } } },
    }),
  );
  await record.until('profiles', inPhase('Succeeded'));
  const said = (container: string) => lifepod.cliOk('logs', 'profiles', '-c', container);
  expect(await said('first')).toBe('Seccomp:\t0\n');
  expect(await said('last')).toBe('Seccomp:\t2\n');
  expect(await said('very-last')).toBe('Seccomp:\t0\n');
});

describe('the user of an image', () => {
  const images = { named: 'member', numbered: '1234' };
  beforeAll(async () => {
    const busybox = readFileSync(findProgram('busybox') ?? '');
    const file = (path: string, content: string) => ({ type: 'file', path, mode: 0o644, content }) as const;
    for (const [name, user] of Object.entries(images)) {
      const archive = join(lifepod.dataDir, `${name}.tar`);
      await writeImageArchive(
        archive,
        `docker.io/library/${name}:1`,
        [
          { type: 'directory', path: 'bin/', mode: 0o755 },
          { type: 'file', path: 'bin/busybox', mode: 0o755, content: busybox },
          ...['sh', 'sleep', 'cat'].map(
            (link) => ({ type: 'link', path: `bin/${link}`, target: 'bin/busybox' }) as const,
          ),
          { type: 'directory', path: 'etc/', mode: 0o755 },
          file('etc/passwd', 'root:x:0:0::/:/bin/sh\nmember:x:1234:1234::/:/bin/sh\n'),
          file('etc/group', 'root:x:0:\nmember:x:1234:\nclub:x:5678:member\n'),
        ],
        { env: ['PATH=/bin'], user },
      );
      await lifepod.cliOk('image', 'load', archive);
    }
  });

  test("containers have the image's user and groups where the Pod does not set them", async () => {
    const app = [
      waiting('named', {}, { image: 'named:1' }),
      waiting('numbered', { runAsNonRoot: true }, { image: 'numbered:1' }),
      waiting('grouped', { runAsGroup: 2500 }, { image: 'named:1' }),
      waiting('root', { runAsGroup: 2500 }),
    ];
    const securityContext = { supplementalGroups: [3000], supplementalGroupsPolicy: 'Merge' };
    await lifepod.apply(pod('by-image', { app, spec: { securityContext } }));
    await record.until('by-image', isReady);
    const user = { Uid: '1234 1234 1234 1234', Gid: '1234 1234 1234 1234' };
    expect(await processOf('by-image', 'named')).toMatchObject({ ...user, Groups: '1234 3000 5678' });
    expect(await processOf('by-image', 'numbered')).toMatchObject(user);
    expect(await processOf('by-image', 'grouped')).toMatchObject({ ...user, Gid: '2500 2500 2500 2500' });
    expect(await processOf('by-image', 'root')).toMatchObject({ Uid: '0 0 0 0', Gid: '2500 2500 2500 2500' });
  });

  test('runAsNonRoot prevents the start of a container whose image has a user name instead of a number', async () => {
    await lifepod.apply(pod('by-name', { app: [waiting('app', { runAsNonRoot: true }, { image: 'named:1' })] }));
    const seen = await record.until('by-name', waitsFor('app', 'CreateContainerConfigError'));
    expect(statusOf(seen, 'app').state?.waiting?.message).toMatch(
      /^container has runAsNonRoot and image has non-numeric user \(member\), cannot verify user is non-root \(/,
    );
  });
});

describe('runAsNonRoot', () => {
  test.each([
    ['whose image runs as root', 'image-root', {}, 'container has runAsNonRoot and image will run as root'],
    ['with runAsUser 0', 'asked-root', { runAsUser: 0 }, "container's runAsUser breaks non-root policy"],
  ])('runAsNonRoot prevents the start of a container %s', async (_property, name, more, cause) => {
    await lifepod.apply(pod(name, { app: [waiting('app', { runAsNonRoot: true, ...more })] }));
    const seen = await record.until(name, waitsFor('app', 'CreateContainerConfigError'));
    expect(statusOf(seen, 'app').state?.waiting?.message).toBe(
      `${cause} (pod: "${name}_default(${seen.metadata.uid})", container: app)`,
    );
  });
});

test('a Pod with hostUsers false does not start if the runtime does not support user namespaces', async () => {
  await lifepod.apply(pod('own-users', { spec: { hostUsers: false } }));
  expect(await record.event('own-users', /FailedCreatePodSandBox/)).toContain('does not support user namespaces');
});

describe('names', () => {
  test('the hostname, /etc/hosts and /etc/resolv.conf follow the Pod spec', async () => {
    await lifepod.apply(
      pod('named', {
        spec: {
          hostname: 'box',
          subdomain: 'set',
          setHostnameAsFQDN: true,
          hostAliases: [{ ip: '192.0.2.7', hostnames: ['one.example', 'two.example'] }],
          dnsPolicy: 'None',
          dnsConfig: {
            nameservers: ['192.0.2.53'],
            searches: ['a.example', 'b.example'],
            options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
          },
        },
      }),
    );
    const { status } = await record.until('named', isReady);
    expect(await inside('named', 'app', 'hostname')).toBe('box.set.default.svc.cluster.local\n');
    const hosts = await inside('named', 'app', 'cat /etc/hosts');
    expect(hosts).toMatch(/^# Kubernetes-managed hosts file\.\n/);
    expect(hosts).toContain(`${status?.podIP}\tbox.set.default.svc.cluster.local\tbox\n`);
    expect(hosts).toContain('\n# Entries added by HostAliases.\n192.0.2.7\tone.example\ttwo.example\n');
    expect(await inside('named', 'app', 'cat /etc/resolv.conf')).toBe(
      'search a.example b.example\nnameserver 192.0.2.53\noptions ndots:2 edns0\n',
    );
  });

  test('a host name that is too long is truncated, and with setHostnameAsFQDN the Pod does not start', async () => {
    const long = `${'a'.repeat(62)}-b`;
    await lifepod.apply(pod(long));
    const spec = { hostname: 'b'.repeat(63), subdomain: 'set', setHostnameAsFQDN: true };
    await lifepod.apply(pod('too-long', { spec }));
    await record.until(long, isReady);
    expect(await inside(long, 'app', 'hostname')).toBe(`${'a'.repeat(62)}\n`);
    const full = `${'b'.repeat(63)}.set.default.svc.cluster.local`;
    expect(await record.event('too-long', /FailedCreatePodSandBox/)).toContain(
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${full} is too long (64 characters is the max, ${full.length} characters requested)`,
    );
    await lifepod.delete('pod', 'too-long', '--now');
  });

  test("a Pod with hostNetwork and ClusterFirstWithHostNet uses the cluster's DNS, and its dnsConfig is added", async () => {
    const dnsPolicy = 'ClusterFirstWithHostNet';
    const dnsConfig = {
      nameservers: ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
      searches: ['own.example'],
      options: [{ name: 'ndots', value: '1' }, { name: 'edns0' }],
    };
    await lifepod.apply(pod('merged', { spec: { hostNetwork: true, dnsPolicy, dnsConfig } }));
    await record.until('merged', isReady);
    const [search, ...lines] = (await inside('merged', 'app', 'cat /etc/resolv.conf')).trim().split('\n');
    expect(search).toMatch(
      /^search default\.svc\.cluster\.local svc\.cluster\.local cluster\.local( .*)? own\.example$/,
    );
    const servers = lines.filter((line) => line.startsWith('nameserver ')).map((line) => line.split(' ')[1]);
    expect(servers.slice(1)).toEqual(['192.0.2.1', '192.0.2.2']);
    expect(lines).toContain('options ndots:1 edns0');
    expect(await record.event('merged', /DNSConfigForming/)).toBe(
      `Warning DNSConfigForming: Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${servers.join(' ')}`,
    );
  });

  test('Pods use the DNS of the cluster, or with dnsPolicy Default the DNS of the node', async () => {
    await lifepod.apply(pod('cluster-first'));
    await lifepod.apply(pod('as-host', { spec: { dnsPolicy: 'Default' } }));
    await record.until('cluster-first', isReady);
    await record.until('as-host', isReady);
    const lines = (await inside('cluster-first', 'app', 'cat /etc/resolv.conf')).split('\n');
    expect(lines[0]).toMatch(/^search default\.svc\.cluster\.local svc\.cluster\.local cluster\.local( |$)/);
    expect(lines).toContain('options ndots:5');
    expect(await inside('cluster-first', 'app', 'nslookup kubernetes.default.svc.cluster.local')).toContain('Address');
    const servers = (text: string): string[] => text.split('\n').filter((line) => line.startsWith('nameserver'));
    const own = servers(readFileSync('/etc/resolv.conf', 'utf8')).slice(0, 3);
    expect(servers(await inside('as-host', 'app', 'cat /etc/resolv.conf'))).toEqual(own);
    expect(await inside('cluster-first', 'app', 'hostname')).toBe('cluster-first\n');
  });
});

describe('namespaces', () => {
  const namespace = (name: string, container: string, of: string): Promise<string> =>
    inside(name, container, `readlink /proc/self/ns/${of}`).then((text) => text.trim());

  test('a Pod with hostNetwork, hostPID and hostIPC shares the namespaces of the node', async () => {
    const spec = { hostNetwork: true, hostPID: true, hostIPC: true };
    await lifepod.apply(pod('on-host', { spec }));
    const { status } = await record.until('on-host', isReady);
    for (const of of ['net', 'pid', 'ipc'])
      expect(await namespace('on-host', 'app', of)).toBe(readlinkSync(`/proc/self/ns/${of}`));
    expect(status?.podIP).toBe(status?.hostIP);
    expect(await inside('on-host', 'app', 'hostname')).toBe(`${hostname()}\n`);
    expect(await inside('on-host', 'app', 'cat /etc/hosts')).toMatch(
      /^# Kubernetes-managed hosts file \(host network\)\.\n/,
    );
  });

  test('each container has its own process namespace, or shares that of the Pod with shareProcessNamespace', async () => {
    const app = [
      { name: 'app', script: WAIT },
      { name: 'other', script: WAIT },
    ];
    await lifepod.apply(pod('apart', { app }));
    await lifepod.apply(pod('together', { app, spec: { shareProcessNamespace: true } }));
    await record.until('apart', isReady);
    await record.until('together', isReady);
    expect(await namespace('apart', 'app', 'pid')).not.toBe(await namespace('apart', 'other', 'pid'));
    expect(await namespace('together', 'app', 'pid')).toBe(await namespace('together', 'other', 'pid'));
    for (const of of ['net', 'ipc', 'uts'])
      expect(await namespace('apart', 'app', of)).toBe(await namespace('apart', 'other', of));
    expect(await inside('apart', 'app', 'cat /proc/1/comm')).toBe('sh\n');
    expect(await inside('together', 'app', 'cat /proc/1/comm')).toBe('pause\n');
  });
});

describe('host ports', () => {
  const script = 'trap "exit 0" TERM; while :; do echo hello from inside | nc -l -p 8080 & wait $!; done';
  const readinessProbe = {
    exec: { command: ['sh', '-c', "grep -q ':1F90 ' /proc/net/tcp /proc/net/tcp6"] },
    periodSeconds: 1,
  };
  const ported = (name: string, port: object): Promise<void> =>
    lifepod.apply(
      pod(name, { app: [{ name: 'app', script, ports: [{ containerPort: 8080, ...port }], readinessProbe }] }),
    );
  const hear = (address: string, port: number): Promise<string> =>
    runCommandOk('busybox', ['nc', '-w', '10', address, String(port)], { input: '' });

  test('a hostPort is forwarded to the container, and another Pod can use the port after the first Pod is deleted', async () => {
    await ported('ported', { hostPort: 28_083 });
    const { status } = await record.until('ported', isReady);
    expect(await hear(status?.hostIP ?? '', 28_083)).toBe('hello from inside\n');
    await lifepod.delete('pod', 'ported', '--now');
    await ported('ported-again', { hostPort: 28_083 });
    const next = await record.until('ported-again', isReady);
    expect(await hear(next.status?.hostIP ?? '', 28_083)).toBe('hello from inside\n');
  });

  test('a hostPort with a hostIP is forwarded only from this address', async () => {
    await ported('local', { hostPort: 28_084, hostIP: '127.0.0.1' });
    const { status } = await record.until('local', isReady);
    expect(await hear('127.0.0.1', 28_084)).toBe('hello from inside\n');
    await expect(hear(status?.hostIP ?? '', 28_084)).rejects.toThrow();
  });

  test('a UDP hostPort is forwarded to the container', async () => {
    const ports = [{ containerPort: 8081, hostPort: 28_085, protocol: 'UDP' }];
    await lifepod.apply(pod('datagrams', { app: [{ name: 'app', script: WAIT, ports }] }));
    const running = await record.until('datagrams', isReady);
    const [pid] = processesOf(containerGroup(lifepod.dataDir, running, 'app'));
    // busybox cannot answer datagrams, so a Node.js program does that in the container's network namespace.
    const answer = `const s = require('node:dgram').createSocket('udp4');
      s.on('message', (text, from) => s.send('heard ' + text, from.port, from.address));
      s.bind(8081, () => console.log('bound'));`;
    const server = spawn('nsenter', [`--net=/proc/${pid}/ns/net`, process.execPath, '-e', answer]);
    const client = createSocket('udp4');
    try {
      await once(server.stdout, 'data');
      const heard = once(client, 'message');
      client.send('you', 28_085, running.status?.hostIP);
      expect(String((await heard)[0])).toBe('heard you');
    } finally {
      client.close();
      server.kill('SIGKILL');
    }
  });
});

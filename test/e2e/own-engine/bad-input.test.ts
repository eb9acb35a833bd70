import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DATA_FORMAT_VERSION } from '../../../src/engine/data-folder/format.ts';
import { runCommand, runCommandOk } from '../../../src/platform/processes.ts';
import {
  freeNetwork,
  LAUNCHER,
  type Lifepod,
  launch,
  REPOSITORY,
  scratchFolder,
  startLifepod,
} from '../../support/lifepod.ts';

describe('a request', () => {
  let lifepod: Lifepod;
  beforeAll(async () => {
    lifepod = await startLifepod();
  });
  afterAll(() => lifepod?.stop());

  const PODS = '/api/v1/namespaces/default/pods';
  const post = (path: string, body: string): Promise<{ code: number; stderr: string }> =>
    lifepod.kubectlInput(body, 'create', '--raw', path, '-f', '-');

  test('a request with bad YAML is refused', async () => {
    const result = await lifepod.kubectlInput('kind: Pod\n  name: [', 'apply', '-f', '-');
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(/error parsing|error converting YAML/);
  });

  test('a request with bad JSON is a BadRequest', async () => {
    const result = await post(PODS, '{"kind": "Pod",');
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('(BadRequest)');
  });

  test('a request for an unknown kind is refused', async () => {
    const foo = JSON.stringify({ apiVersion: 'v1', kind: 'Foo', metadata: { name: 'x' } });
    const applied = await lifepod.kubectlInput(foo, 'apply', '-f', '-');
    expect(applied.stderr).toContain('no matches for kind "Foo" in version "v1"');
    const posted = await post('/api/v1/namespaces/default/foos', foo);
    expect(posted.stderr).toContain('(NotFound)');
    const asPod = await post(PODS, foo);
    expect(asPod.stderr).toContain('(BadRequest)');
  });

  test('a request with a field of the wrong type is a BadRequest that names the field', async () => {
    const wrong = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' }, spec: { containers: 'none' } };
    const result = await post(PODS, JSON.stringify(wrong));
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('(BadRequest)');
    expect(result.stderr).toContain('containers');
  });

  test('an object with an unknown field is refused by kubectl’s strict validation', async () => {
    const wrong = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'x' },
      spec: { containers: [{ name: 'a', image: 'b', imge: 'c' }] },
    };
    const result = await lifepod.kubectlInput(JSON.stringify(wrong), 'apply', '-f', '-');
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('unknown field "spec.containers[0].imge"');
  });

  test('a request of more than 3 MB is RequestEntityTooLarge', async () => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'big' }, data: { x: 'y'.repeat(3_200_000) } };
    const result = await lifepod.kubectlInput(JSON.stringify(body), 'create', '-f', '-');
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('(RequestEntityTooLarge)');
    expect(result.stderr).toContain('limit is 3145728');
  });

  test('a data folder in use is refused, and its engine keeps running', async () => {
    const result = await lifepod.cli('up', '--port', '0');
    expect(result).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(
          `^lifepod: the data folder ${lifepod.dataDir} is in use by a running lifepod \\(PID ${lifepod.pid()}\\): choose another ` +
            `--data-dir, or stop that engine: 'kill ${lifepod.pid()}' leaves its Pods running, and '\\S*lifepod down --data-dir ` +
            `${lifepod.dataDir}' ends them, too\n$`,
        ),
      ),
    });
    expect(await lifepod.cli('up', '--detach', '--max-pods', '61')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^lifepod is already running in .* with another value of --max-pods, .*\n$/),
    });
    expect(await lifepod.kubectlOk('get', 'ns', 'default', '-o', 'name')).toBe('namespace/default\n');
  });

  test('image load refuses a missing archive and one that is not an image', async () => {
    const missing = await lifepod.cli('image', 'load', '/nonexistent.tar');
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain('/nonexistent.tar');
    const wrong = join(lifepod.dataDir, 'wrong.tar');
    writeFileSync(wrong, 'not an archive');
    const result = await lifepod.cli('image', 'load', wrong);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(wrong);
  });
});

describe('lifepod up', () => {
  const refused = async (args: string[], message: string | RegExp): Promise<void> => {
    const scratch = scratchFolder();
    try {
      const result = await launch(['up', '--data-dir', scratch.path, ...args]);
      expect(result.stderr).toMatch(message);
      expect(result.stderr.trim().split('\n')).toHaveLength(1);
      expect(result.code).toBe(1);
    } finally {
      await scratch.remove();
    }
  };

  test('up refuses a port in use', async () => {
    const server = createServer();
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
    });
    try {
      const message = `port ${port} on 127.0.0.1 is in use by another program: choose another with --port`;
      await refused(['--port', String(port)], message);
      await refused(['--port', String(port), '--detach'], message);
    } finally {
      server.close();
    }
  });

  test('up refuses a data folder of a newer version', async () => {
    const scratch = scratchFolder();
    try {
      writeFileSync(join(scratch.path, 'format-version'), `${DATA_FORMAT_VERSION + 1}\n`);
      const result = await launch(['up', '--data-dir', scratch.path, ...(await freeNetwork())]);
      expect(result).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`the data folder ${scratch.path} was written by a newer lifepod`),
      });
    } finally {
      await scratch.remove();
    }
  });

  test('up refuses invalid and overlapping networks', async () => {
    await refused(['--pod-cidr', '10.1.2.3'], /--pod-cidr 10\.1\.2\.3 is not an IPv4 network/);
    await refused(
      ['--pod-cidr', '10.96.0.0/24'],
      /--pod-cidr 10\.96\.0\.0\/24 and --service-cidr 10\.96\.0\.0\/16 overlap/,
    );
  });

  test('an option that is refused does not create the data folder', async () => {
    const scratch = scratchFolder();
    try {
      const dataDir = join(scratch.path, 'new');
      const result = await launch(['up', '--data-dir', dataDir, '--max-pods=-1']);
      expect(result.stderr).toBe('lifepod: --max-pods -1 is not a valid number of Pods: give 1 or more\n');
      expect(existsSync(dataDir)).toBe(false);
    } finally {
      await scratch.remove();
    }
  });

  test('up reports all manifests that cannot be read, and creates no data folder', async () => {
    const scratch = scratchFolder();
    try {
      const [dataDir, text] = [join(scratch.path, 'new'), join(scratch.path, 'README.md')];
      writeFileSync(text, '# Title\n\nText: of a document: that is no manifest\n');
      const result = await launch(['up', '--data-dir', dataDir, '/none/a.yaml', text, '/none/b.yaml']);
      expect(result.code).toBe(1);
      expect(result.stderr.split('\n')).toEqual([
        'lifepod: the manifest /none/a.yaml does not exist',
        expect.stringContaining(`lifepod: ${text} is not valid YAML`),
        'lifepod: the manifest /none/b.yaml does not exist',
        '',
      ]);
      expect(existsSync(dataDir)).toBe(false);
    } finally {
      await scratch.remove();
    }
  });

  test('up refuses a data folder that is a file', async () => {
    const scratch = scratchFolder();
    try {
      const path = join(scratch.path, 'file');
      writeFileSync(path, '');
      const result = await launch(['up', '--data-dir', path, ...(await freeNetwork())]);
      expect(result.code).toBe(1);
      expect(result.stderr).toContain(`${path} is not a folder`);
    } finally {
      await scratch.remove();
    }
  });

  test('up without root says what to do', async () => {
    const asNobody = (...args: string[]) =>
      runCommand('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', LAUNCHER, ...args], {
        env: { ...process.env, SUDO_UID: undefined, DOAS_USER: undefined, PKEXEC_UID: undefined },
      });
    expect(await asNobody('up', '--data-dir', '/tmp/none')).toMatchObject({
      code: 1,
      stderr: `lifepod: only root can run this command: type 'sudo ${LAUNCHER} up --data-dir /tmp/none'\n`,
    });
    expect(await asNobody('up', '/tmp/none/missing.yaml')).toMatchObject({
      code: 1,
      stderr: 'lifepod: the manifest /tmp/none/missing.yaml does not exist\n',
    });
    const scratch = scratchFolder();
    try {
      const logs = await asNobody('logs', 'web', '--data-dir', scratch.path);
      // Only root can see the data folder of an engine that was started with a relative path.
      const refused = new RegExp(
        `^(?:lifepod is not running in ${scratch.path}: start it with 'eval "\\$\\(sudo ${LAUNCHER} up --detach --data-dir ${scratch.path}\\)"'` +
          `|lifepod: only root can read the data folder ${scratch.path}: type 'sudo [^\\n]*)\\n$`,
      );
      expect(logs.stderr).toMatch(refused);
      expect(logs.code).toBe(1);
      const results = await Promise.all(
        [['status'], ['image', 'list']].map((words) => asNobody(...words, '--data-dir', scratch.path)),
      );
      expect(results.map(({ code }) => code)).toEqual([1, 1]);
      expect(results[0]?.stderr).toMatch(refused);
      const onlyRoot = `lifepod: only root can run this command: type 'sudo ${LAUNCHER} image list --data-dir ${scratch.path}'\n`;
      if (results[1]?.stderr !== onlyRoot) expect(results[1]?.stderr).toMatch(refused);
    } finally {
      await scratch.remove();
    }
  });

  test('up as root without the needed capabilities says what is missing', async () => {
    const scratch = scratchFolder();
    try {
      const without = ['--inh-caps=-net_admin', '--bounding-set=-net_admin'];
      const result = await runCommand('setpriv', [
        ...without,
        LAUNCHER,
        'up',
        '--data-dir',
        scratch.path,
        ...(await freeNetwork()),
        '--log-level',
        'error',
      ]);
      expect(result.stderr).toMatch(/^lifepod: (ip|nft) .*not permitted; lifepod needs all capabilities of root.*\n$/);
      expect(result.code).toBe(1);
    } finally {
      await scratch.remove();
    }
  });

  test('up names a missing package', async () => {
    const hide = 'mount --bind /dev/null "$(readlink -f "$(command -v catatonit)")" && exec "$@"';
    const scratch = scratchFolder();
    try {
      const command = [LAUNCHER, 'up', '--data-dir', scratch.path, ...(await freeNetwork())];
      const result = await runCommand('unshare', ['--mount', 'sh', '-c', hide, 'sh', ...command], {
        env: { ...process.env, SUDO_UID: undefined, DOAS_USER: undefined, PKEXEC_UID: undefined },
      });
      expect(result).toMatchObject({
        code: 1,
        stderr: `lifepod: the package catatonit is missing: run 'apt-get install catatonit'\n`,
      });
    } finally {
      await scratch.remove();
    }
  });

  test('unknown options and commands are refused', async () => {
    expect(await launch(['up', '--colour'])).toMatchObject({ code: 1, stderr: expect.stringContaining('--colour') });
    expect(await launch(['upp'])).toMatchObject({ code: 1, stderr: expect.stringContaining('upp') });
  });
});

test('on a full disk writes fail with a clear error, reads work, nothing is lost, and writes work again later', async () => {
  const scratch = scratchFolder();
  const dataDir = join(scratch.path, 'data');
  mkdirSync(dataDir);
  await runCommandOk('mount', ['-t', 'tmpfs', '-o', 'size=128m,mode=0700', 'tmpfs', dataDir]);
  try {
    const auditLog = join(dataDir, 'audit.log');
    const policy = join(REPOSITORY, 'examples/07-audit-log/policy.yaml');
    const lifepod = await startLifepod({
      scratch: { path: dataDir, remove: async () => undefined },
      options: ['--audit-policy-file', policy, '--audit-log-path', auditLog],
    });
    try {
      await lifepod.kubectlOk('create', 'configmap', 'kept', '--from-literal=a=b');
      const filler = join(dataDir, 'filler');
      const { bavail, bsize } = statfsSync(dataDir);
      await runCommand('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4096', `count=${(bavail * bsize) / 4096}`]);
      expect(statfsSync(dataDir).bavail).toBe(0);
      const createBig = (name: string) => {
        const data = { x: 'y'.repeat(900_000) };
        const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
        return lifepod.kubectlInput(JSON.stringify(map), 'create', '-f', '-');
      };
      // The store reserves disk blocks in advance, which the first writes may use.
      let fits = 0;
      while (fits < 30 && (await createBig(`fits-${fits}`)).code === 0) fits++;
      expect(fits).toBeLessThan(30);
      // The request is repeated, because a failed write must not damage the state of the store in memory.
      for (let attempt = 0; attempt < 8; attempt++) {
        const refused = await createBig('refused');
        expect(refused.code).toBe(1);
        expect(refused.stderr).toMatch(/the disk is full; free some space and try again/);
      }
      expect(await lifepod.kubectlOk('get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}')).toBe('b');
      rmSync(filler);
      await lifepod.kubectlOk('create', 'configmap', 'after');
      expect(await lifepod.kubectlOk('get', '--raw', '/metrics')).toMatch(
        /^apiserver_audit_error_total\{plugin="log"\} [1-9]/m,
      );
      const events = readFileSync(auditLog, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(events.some(({ verb, objectRef }) => verb === 'create' && objectRef?.name === 'after')).toBe(true);
      expect(readFileSync(join(dataDir, 'lifepod.log'), 'utf8').split('audit events are lost')).toHaveLength(2);
      await lifepod.kill('SIGKILL');
      await lifepod.up();
      const names = await lifepod.kubectlOk('get', 'configmap', '-o', 'name');
      expect(names).toContain('configmap/kept');
      expect(names).toContain('configmap/after');
      expect(names).not.toContain('configmap/refused');
    } finally {
      await lifepod.stop();
    }
  } finally {
    await runCommandOk('umount', [dataDir]);
    await scratch.remove();
  }
});

import { expect, test } from 'vitest';
import { type ConfigOptions, containerdConfig } from './config.ts';
import { containerdPaths } from './paths.ts';

const paths = { ...containerdPaths('/data'), registries: ['/data/certs.d', '/etc/certs.d'] };
const options: ConfigOptions = {
  sandboxImage: 'pause:1',
  cniConfDir: '/cni/conf',
  cniBinDir: '/cni/"bin"',
  restrictOomScoreAdj: true,
};
const RUNTIMES = '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.';
const handlers = (more: Partial<ConfigOptions>): string => {
  const config = containerdConfig(paths, { ...options, ...more });
  return config.slice(
    config.indexOf('\n', config.lastIndexOf('[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc')),
  );
};

test('the configuration has the paths of the data folder and the options as quoted text', () => {
  const lines = containerdConfig(paths, options).split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([
      `root = "${paths.root}"`,
      `state = "${paths.state}"`,
      `  address = "${paths.socket}"`,
      '  sandbox_image = "pause:1"',
      '  restrict_oom_score_adj = true',
      '  conf_dir = "/cni/conf"',
      '  bin_dir = "/cni/\\"bin\\""',
      '  config_path = "/data/certs.d:/etc/certs.d"',
      `  Root = "${paths.runcRoot}"`,
      '  "io.containerd.timeout.shim.load" = "20s"',
    ]),
  );
});

test('runc is the only runtime handler of a configuration without others', () => {
  expect(handlers({})).not.toContain(RUNTIMES);
});

test('a runtime handler is run with the shim of runc if it is a path, and is a shim of its own otherwise', () => {
  const text = handlers({ runtimeHandlers: { gvisor: '/usr/bin/runsc', kata: 'io.containerd.kata.v2' } });
  const [, gvisor = '', gvisorOptions = '', kata = ''] = text.split(RUNTIMES);
  expect([gvisor, gvisorOptions, kata].map((table) => table.trim().split('\n'))).toEqual([
    ['"gvisor"]', '  runtime_type = "io.containerd.runc.v2"'],
    ['"gvisor".options]', '  BinaryName = "/usr/bin/runsc"', '  SystemdCgroup = false', `  Root = "${paths.runcRoot}"`],
    ['"kata"]', '  runtime_type = "io.containerd.kata.v2"'],
  ]);
});

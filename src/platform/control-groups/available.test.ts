import { expect, test } from 'vitest';
import { asRoot } from '../programs/typed-program.ts';
import { controlGroupProblem } from './available.ts';

const V1 = '34 31 0:31 / /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids\n';
const SYSTEMD = '35 31 0:32 / /sys/fs/cgroup/systemd rw,nosuid shared:9 - cgroup cgroup rw,xattr,name=systemd\n';
const UNIFIED = '36 31 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n';
const V2 = '30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n';
const OTHER = '24 1 0:22 / /sys rw,nosuid - sysfs sysfs rw\n25 1 0:23 / /cgroup rw - tmpfs cgroup rw\n';
const HEADER = '#subsys_name\thierarchy\tnum_cgroups\tenabled\n';
const IN_V1 = `${HEADER}cpu\t1\t75\t1\ncpuacct\t1\t75\t1\nmemory\t4\t3\t1\ndevices\t5\t3\t0\npids\t8\t3\t1\nhugetlb\t0\t3\t1\n`;
const IN_V2 = `${HEADER}cpu\t0\t75\t1\nmemory\t0\t3\t1\npids\t0\t3\t1\n`;
const mountV1 = (...options: string[]): string =>
  `mountpoint -q /sys/fs/cgroup || mount -t tmpfs cgroup /sys/fs/cgroup; for c in ${options.join(' ')}; ` +
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the placeholders are those of a shell.
  'do d=${c##*name=}; d=/sys/fs/cgroup/${d%%,*}; mkdir -p $d; mount -t cgroup -o $c cgroup $d; done';
const MOUNT_V1 = mountV1('cpu,cpuacct', 'memory', 'pids');
const memberships = '9:name=systemd:/\n8:pids:/a:name=b:/\n1:cpu,cpuacct:/\n0::/\n';

test.each<[string, string, string | undefined, string]>([
  ['a hierarchy of version 1', V1, undefined, IN_V1],
  ['version 1 and the mount of systemd', UNIFIED + SYSTEMD + V1, undefined, IN_V1],
  ['version 2', V2, 'cpuset cpu io memory hugetlb pids\n', IN_V2],
  ['version 2 without memory, as on a Raspberry Pi', V2, 'cpuset cpu io pids\n', IN_V2],
])('runc can run containers on a machine with %s', (_, mountinfo, offered, hierarchies) => {
  expect(controlGroupProblem({}, { mountinfo, offered, hierarchies, memberships })).toBeUndefined();
});

const MOUNT_V2 = asRoot('mount -t cgroup2 cgroup2 /sys/fs/cgroup', {});

const NONE = 'no control groups are mounted at /sys/fs/cgroup';
const WITHOUT = 'no control groups with the controllers cpu, memory, pids are mounted at /sys/fs/cgroup';
const LACKING = 'the control groups at /sys/fs/cgroup have none of the controllers cpu, memory, pids';
const container = 'or, in a container, give it the control groups of the machine';
test.each<[string, string, string | undefined, string, string, string]>([
  ['no mount', OTHER, undefined, IN_V2, NONE, `mount them with '${MOUNT_V2}', ${container}`],
  ['no mount on an unknown kernel', OTHER, undefined, '', NONE, `mount them with '${MOUNT_V2}', ${container}`],
  [
    'the mount of systemd, but controllers in version 1',
    OTHER + SYSTEMD + UNIFIED,
    undefined,
    IN_V1,
    WITHOUT,
    `mount them as root with '${MOUNT_V1}', or boot with the kernel parameter cgroup_no_v1=all, ${container}`,
  ],
  [
    'no mount of version 1, in which systemd has a hierarchy without controllers',
    OTHER,
    undefined,
    IN_V1,
    NONE,
    `mount them as root with '${mountV1('cpu,cpuacct', 'memory', 'pids', 'none,name=systemd')}', or boot with the kernel parameter cgroup_no_v1=all, ${container}`,
  ],
  [
    'version 2, but controllers in version 1',
    SYSTEMD + V1 + V2,
    'hugetlb\n',
    IN_V1,
    LACKING,
    `these are in hierarchies of cgroup v1: mount those as root with 'umount /sys/fs/cgroup && { ${MOUNT_V1}; }', or boot with the kernel parameter cgroup_no_v1=all`,
  ],
  [
    'version 2 without controllers',
    V2,
    '\n',
    IN_V2,
    LACKING,
    `boot without the kernel parameter cgroup_disable, ${container}`,
  ],
])('runc cannot run containers on a machine with %s', (_, mountinfo, offered, hierarchies, what, advice) => {
  expect(controlGroupProblem({}, { mountinfo, offered, hierarchies, memberships })).toEqual({ what, advice });
});

test('the mount is advised with sudo to a user who has typed it', () => {
  const facts = { mountinfo: OTHER, offered: undefined, hierarchies: IN_V2, memberships };
  expect(controlGroupProblem({ SUDO_UID: '1000' }, facts)?.advice).toContain("'sudo mount -t cgroup2 ");
});

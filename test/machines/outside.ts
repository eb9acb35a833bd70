/**
 * Another machine in the same network as the virtual machine: a network namespace, which a systemd unit creates before lifepod starts. It
 * serves two ports, and tries to connect to another port of the virtual machine until it succeeds.
 */
import { writes } from './readme.ts';

export const MACHINE_IP = '192.0.2.10';
export const OUTSIDE_IP = '192.0.2.20';

/** The body of a response is the number of the port. */
export const [ALLOWED, REFUSED] = [80, 81];

/** The other machine tries to connect to this port of the virtual machine. */
export const KNOCKED = 8099;

/** The file that the other machine writes when it has connected to KNOCKED. */
export const KNOCKS = '/var/tmp/knocks';

const inOutside = 'ip netns exec outside';

const PROGRAM = `set -e
ip netns add outside
ip link add outside type veth peer name eth0 netns outside
ip address add ${MACHINE_IP}/24 dev outside
ip link set outside up
ip -n outside address add ${OUTSIDE_IP}/24 dev eth0
ip -n outside link set eth0 up
for port in ${ALLOWED} ${REFUSED}; do
  mkdir -p /srv/$port
  echo $port >/srv/$port/index.html
  ${inOutside} busybox httpd -p $port -h /srv/$port
done
${inOutside} socat -lf /dev/null TCP4:${MACHINE_IP}:${KNOCKED},forever,interval=0.5,connect-timeout=2 SYSTEM:'echo reached >${KNOCKS}' &
`;

export const OUTSIDE_UNIT = `
${writes('/usr/local/sbin/outside', PROGRAM)}
${writes(
  '/etc/systemd/system/outside.service',
  `[Unit]
Before=lifepod.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/bash /usr/local/sbin/outside
[Install]
WantedBy=multi-user.target
`,
)}`;

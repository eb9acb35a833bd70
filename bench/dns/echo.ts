/**
 * The floor of the benchmark of DNS: a process that sends each UDP message back. Sends its port to the parent process, and ends when the
 * parent disconnects.
 *
 * node echo.ts ADDRESS
 */
import { createSocket } from 'node:dgram';

const [address = '127.0.0.1'] = process.argv.slice(2);
// Like the DNS process, this process looks up no addresses.
const socket = createSocket({ type: 'udp4', lookup: (host, _, done) => done(null, host, 4) });
socket.on('message', (message, peer) => socket.send(message, peer.port, peer.address));
socket.bind(0, address, () => process.send?.(socket.address().port));
process.on('disconnect', () => process.exit());

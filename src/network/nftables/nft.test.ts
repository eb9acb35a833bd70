import { expect, test } from 'vitest';
import { parseObjects } from './nft.ts';

test('the objects of a table are listed with the number of rules of each chain', async () => {
  const listed = [
    'table inet lifepod-0 {',
    '\tset pods/interfaces {',
    '\t\ttype ifname',
    '\t}',
    '',
    '\tmap services/m {',
    '\t\ttype ipv4_addr . inet_proto . inet_service : verdict',
    '\t\tflags timeout',
    '\t}',
    '',
    '\tchain services/x {',
    '\t}',
    '',
    '\tchain services/base {',
    '\t\ttype filter hook input priority filter; policy accept;',
    '\t\tip saddr { 10.0.0.1,',
    '\t\t\t   10.0.0.2 } accept',
    '\t\ttcp dport 80 drop',
    '\t}',
    '}',
    '',
  ].join('\n');
  expect(await parseObjects(listed)).toEqual([
    { kind: 'set', name: 'pods/interfaces', rules: 0 },
    { kind: 'map', name: 'services/m', rules: 0 },
    { kind: 'chain', name: 'services/x', rules: 0 },
    { kind: 'chain', name: 'services/base', rules: 2 },
  ]);
});

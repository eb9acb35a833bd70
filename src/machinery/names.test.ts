import { describe, expect, it } from 'vitest';
import * as names from './names.ts';

const label =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const dns1035 =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const qualified =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const labelValue =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const tables: Record<string, [names.NameErrors, [string, string[]][]]> = {
  dns1123LabelErrors: [
    names.dns1123LabelErrors,
    [
      ['a', []],
      ['1-a', []],
      ['a'.repeat(63), []],
      ['a'.repeat(64), ['must be no more than 63 characters']],
      ['a.b', ['must not contain dots']],
      ['A', [label]],
      ['', [label]],
      ['a\n', [label]],
      ['-a', [label]],
      ['ü', [label]],
    ],
  ],
  dns1123SubdomainErrors: [
    names.dns1123SubdomainErrors,
    [
      ['a.b-c.1', []],
      ['a..b', [subdomain]],
      ['a'.repeat(254), ['must be no more than 253 characters']],
    ],
  ],
  dns1035LabelErrors: [
    names.dns1035LabelErrors,
    [
      ['my-svc', []],
      ['1svc', [dns1035]],
      ['a.b', [dns1035]],
    ],
  ],
  qualifiedNameErrors: [
    names.qualifiedNameErrors,
    [
      ['app.kubernetes.io/name', []],
      ['A_b', []],
      ['/a', ['prefix part must be non-empty']],
      ['A/a', [`prefix part ${subdomain}`]],
      ['', ['name part must be non-empty', `name part ${qualified}`]],
      [
        'a/b/c',
        [`a qualified name ${qualified} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`],
      ],
      ['x'.repeat(64), ['name part must be no more than 63 characters']],
    ],
  ],
  labelValueErrors: [
    names.labelValueErrors,
    [
      ['', []],
      ['v1.2_3', []],
      ['a b', [labelValue]],
    ],
  ],
  envVarNameErrors: [
    names.envVarNameErrors,
    [
      ['PATH', []],
      ['1 $x', []],
      ['', ['environment variable name must be non-empty']],
      ['a=b', ["a valid environment variable name must consist only of printable ASCII characters other than '='"]],
      ['é', ["a valid environment variable name must consist only of printable ASCII characters other than '='"]],
    ],
  ],
  configMapKeyErrors: [
    names.configMapKeyErrors,
    [
      ['a.txt', []],
      ['.', ["must not be '.'"]],
      ['..', ["must not be '..'"]],
      ['..a', ["must not start with '..'"]],
      [
        'a/b',
        [
          "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        ],
      ],
    ],
  ],
  portNameErrors: [
    names.portNameErrors,
    [
      ['http', []],
      ['8080', ['must contain at least one letter (a-z)']],
      ['a--b', ['must not contain consecutive hyphens']],
      ['a-', ['must not begin or end with a hyphen']],
      ['Http', ['must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)']],
      ['abcdefghijklmnop', ['must be no more than 15 characters']],
    ],
  ],
  ipErrors: [
    names.ipErrors,
    [
      ['10.0.0.1', []],
      ['fd00::1', []],
      ['fe80::1%eth0', ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']],
      ['010.0.0.1', ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']],
      ['::ffff:010.0.0.1', ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']],
      ['', ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']],
    ],
  ],
};

for (const [name, [errors, cases]] of Object.entries(tables)) {
  describe(name, () => {
    it.each(cases)(`${name}(%j) returns the messages of upstream`, (value, expected) => {
      expect(errors(value)).toEqual(expected);
    });
  });
}

it('prefixErrors() allows a dash at the end', () => {
  expect(names.prefixErrors(names.dns1123LabelErrors, 'web-')).toEqual([]);
  expect(names.prefixErrors(names.dns1123LabelErrors, 'Web-')).toEqual([label]);
  expect(names.prefixErrors(names.dns1123LabelErrors, '-')).toEqual([label]);
});

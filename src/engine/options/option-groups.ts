/** The groups of the options of `lifepod up`, as headings of its help. The tables of options in README.md have the same names. */
export const OPTION_GROUPS = {
  engine: 'Engine and network:',
  authentication: 'Authentication:',
  audit: 'Audit log, as in kube-apiserver:',
  runtime: 'Runtime and images:',
  pods: 'Pods:',
  eviction: 'Eviction, as in the kubelet:',
  shutdown: 'Shutdown of the machine:',
} as const;

/** Composes the errors for users who lack a right: what they may not do, and how to get the right. */
import { UserError } from '../platform/files.ts';

export const mayNotReadPods = (namespace: string): UserError =>
  new UserError(
    `this user may not read Pods in namespace ${namespace}: give another namespace with -n, or ask an administrator for the role view in this one`,
  );

export const mayNotReadLogs = (namespace: string): UserError =>
  new UserError(
    `this user may not read the logs of Pods in namespace ${namespace}: ask an administrator for the role view there, or for the right to get pods/log`,
  );

export const mayNotSkip = (namespace: string): UserError =>
  new UserError(
    `this user may not give up defer containers in namespace ${namespace}: ask an administrator for the role edit there, or for the right to update pods/defer`,
  );

/** `found`: a clause that says which Pod exists, or that none does. */
export const mayNotReadRecords = (namespace: string, found: string): UserError =>
  new UserError(
    `${found}, and this user may not read the records of Pods in namespace ${namespace}: ask an administrator for the role view there, ` +
      'or for the right to get, list and watch podrecords.lifepod.io',
  );

/** The resources that controllers read and write. */
import type { ResourceRef } from '../machinery/meta.ts';

const core = (resource: string): ResourceRef => ({ group: '', version: 'v1', resource });

export const CONFIG_MAPS = core('configmaps');
export const EVENTS = core('events');
export const NAMESPACES = core('namespaces');
export const NODES = core('nodes');
export const PODS = core('pods');
export const SERVICE_ACCOUNTS = core('serviceaccounts');

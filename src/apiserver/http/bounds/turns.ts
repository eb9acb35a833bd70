/**
 * Decides in which turn of the event loop a piece of work for a request runs. Of the work for users who are neither administrators nor
 * components, one piece runs in each turn, so that these users delay other requests and the rest of the engine by at most one piece of
 * work. Up to REQUESTS_PER_TURN requests of each user may begin in addition.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { UserInfo } from '../../../ports/request.ts';
import { isPrivileged } from '../../auth/authorization/authorizer.ts';
import { createFairTurns, limitPerTurn } from './fair-turns.ts';
import { isComponent } from './shared-places.ts';

/**
 * How many requests of a user may begin at once in one turn of the event loop. Of the further requests of all users together, one begins in
 * each turn.
 */
const REQUESTS_PER_TURN = 16;

const fairTurns = createFairTurns();
const hasManyRequests = limitPerTurn(REQUESTS_PER_TURN);

const comesFirst = (user: UserInfo): boolean => isPrivileged(user) || isComponent(user);

/** Resolves when the next piece of a long response to the user may be written. */
export const turnOf = (user: UserInfo): Promise<void> => (comesFirst(user) ? nextTurn() : fairTurns(user.name));

/** Resolves when a request of the user may begin; undefined if it may begin at once. */
export const turnToBegin = (user: UserInfo): Promise<void> | undefined =>
  comesFirst(user) || !hasManyRequests(user.name) ? undefined : fairTurns(user.name);

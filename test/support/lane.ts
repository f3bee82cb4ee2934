// How long tests may take: npm test is quick, npm run test:soak is thorough. The same tests run in both.
import { describe, inject, test } from 'vitest';
import type { DatabaseKind } from './gateway.ts';

declare module 'vitest' {
  interface ProvidedContext {
    lane: 'fast' | 'soak';
  }
}

/**
 * How much of something random or repeated a test does in each lane. What is too rare for that is looked for
 * with SOAK_TIMES=10, say, which takes as many times as long.
 */
export function amount(fast: number, soak: number): number {
  return inject('lane') === 'soak' ? soak * times : fast;
}

const times = Number(process.env['SOAK_TIMES'] ?? 1);

/**
 * The database of tests that need a twin, but not in every run: behind its socket, the embedded
 * database is a PostgreSQL like any other.
 */
export const laneKinds: readonly DatabaseKind[] =
  inject('lane') === 'soak' ? ['embedded'] : ['PostgreSQL'];

/** What needs no twin: of the lanes that run the same file, npm test alone runs it, and the oldest PostgreSQL. */
export const describeOnce = describe.runIf(inject('lane') === 'fast');
export const testOnce = test.runIf(inject('lane') === 'fast');

/** What takes long and breaks seldom: soak alone runs it. */
export const describeInSoak = describe.runIf(inject('lane') === 'soak');

// Runs in each file of tests: modules are shared between files, hooks are not.
import { afterEach } from 'vitest';
import { clearAway } from './cli/process.ts';

afterEach(clearAway);

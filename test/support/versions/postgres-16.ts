import type { TestProject } from 'vitest/node';
import { setUpRelease } from './other-release.ts';

export default (project: TestProject) => setUpRelease(project, '16.14.0-beta.17');

// A migrated embedded database, made once for the whole test run and copied for each gateway: making
// one anew takes four seconds of computing.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { readConfig } from '../src/config.ts';
import { openDatabase } from '../src/database/database.ts';
import { migrate } from '../src/database/migrations.ts';

declare module 'vitest' {
  interface ProvidedContext {
    embeddedTemplate: string;
  }
}

export default async function makeTemplate(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-template-'));
  const database = await openDatabase(readConfig({ DATA_DIR: folder }));
  await migrate(database.pool, () => {});
  await database.close();
  project.provide('embeddedTemplate', join(folder, 'pgdata'));
  return () => rmSync(folder, { recursive: true, force: true });
}

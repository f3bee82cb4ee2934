// Gateways of several workers, as processes.
import { baseOf, demoEnvironment, migratedEnvironmentOf, type Run, runServer } from './process.ts';

/** Starts a gateway of two workers on a PostgreSQL database, migrated or with the demonstration set. */
export async function startTwo(settings: Record<string, string> = {}, isFilled = false) {
  const environment = await (isFilled ? demoEnvironment() : migratedEnvironmentOf('PostgreSQL'));
  const server = runServer({ ...environment, WORKERS: '2', ...settings });
  const base = await baseOf(server);
  return {
    server,
    base,
    databaseUrl: environment['DATABASE_URL'] ?? '',
    workers: workersOf(server),
  };
}

function workersOf(server: Run): number[] {
  const [, list = ''] = /"workers: ([\d, ]+)"/.exec(server.output()) ?? [];
  return list.split(', ').map(Number);
}

export function isAlive(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
}

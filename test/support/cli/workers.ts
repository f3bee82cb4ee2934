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

/** The value of one series of a gateway; 0 when there is none. */
export async function readMetric(port: string, series: string): Promise<number> {
  const text = await (await fetch(`http://localhost:${port}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return Number(line?.split(' ').at(-1) ?? 0);
}

export function isAlive(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
}

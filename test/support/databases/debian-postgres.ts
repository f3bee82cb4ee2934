// The PostgreSQL of Debian, which is older than that of the npm packages, and has pg_dump.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { findFreePort } from '../http/free-port.js';
import { makeDatabaseFolder } from './database-folder.js';

const versions = '/usr/lib/postgresql';
const [version] = existsSync(versions) ? readdirSync(versions) : [];

/** The folder of its programs. */
export const programs = `${versions}/${version}/bin`;

/** CI installs it; elsewhere it may be missing. */
export const isInstalled = existsSync(`${programs}/initdb`) && existsSync(`${programs}/pg_dump`);

/** Starts it on a free port, in a folder of its own that goes with it. @param settings more options of postgres */
export async function startDebianPostgres(settings = '') {
  const folder = makeDatabaseFolder('debian');
  const port = await findFreePort();
  // It refuses to run as root.
  const isRoot = process.getuid?.() === 0;
  const asServer = (program: string, ...args: string[]) => {
    const command = [`${programs}/${program}`, '-D', `${folder}/data`, ...args];
    const [file = '', ...rest] = isRoot ? ['runuser', '-u', 'postgres', '--', ...command] : command;
    execFileSync(file, rest, { stdio: 'ignore' });
  };
  chmodSync(folder, 0o777);
  asServer('initdb', '-A', 'trust', '-U', 'postgres', '--encoding=UTF8', '--locale=C');
  const options = `-p ${port} -k ${folder} -c max_connections=200 -c max_prepared_transactions=10 ${settings}`;
  asServer('pg_ctl', '-w', '-o', options, '-l', `${folder}/log`, 'start');
  return {
    port,
    close() {
      asServer('pg_ctl', '-m', 'immediate', 'stop');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

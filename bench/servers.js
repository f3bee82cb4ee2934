// Every system runs in a process of its own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../test/support/http/free-port.js';

/** @typedef {{ readonly port: number, readonly processId: number, close(): Promise<void> }} RunningServer */

/** A server that is started later, so that what is measured of it can be listed before. @returns {RunningServer} */
export const planServer = () => ({ port: 0, processId: 0, close: async () => {} });

// Each server that runs is ended with this process; there are more of them than Node expects.
process.setMaxListeners(32);

/**
 * Starts a program that listens on PORT and waits until it does.
 * @param {string} file relative to this folder
 * @param {Record<string, string>} environment
 * @param {string[]} [args]
 * @returns {Promise<RunningServer>}
 */
export function startServer(file, environment, args = []) {
  const path = fileURLToPath(new URL(file, import.meta.url));
  return startProgram(process.execPath, () => [path, ...args], environment);
}

/**
 * @param {string} program
 * @param {(port: number) => string[]} argsOf
 * @param {Record<string, string>} environment
 * @returns {Promise<RunningServer>}
 */
export async function startProgram(program, argsOf, environment) {
  const port = await findFreePort();
  const args = argsOf(port);
  const child = spawn(program, args, {
    // Nothing of the caller's environment: the systems run with their defaults.
    env: { ...environment, NODE_ENV: 'production', HOST: '127.0.0.1', PORT: String(port) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exit = once(child, 'exit');
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  for (let attempt = 0; !(await isListening(port)); attempt += 1) {
    if (child.exitCode !== null) throw new Error(`${args[0]} ended before it listened.`);
    if (attempt > 300) throw new Error(`${args[0]} does not listen.`);
    await sleep(100);
  }
  return {
    port,
    processId: child.pid ?? 0,
    close: async () => {
      // Nothing is lost, and no client has to wait for open connections.
      kill();
      await exit;
      process.off('exit', kill);
    },
  };
}

/** @param {number} port */
async function isListening(port) {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

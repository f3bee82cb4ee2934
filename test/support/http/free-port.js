// A port for a server that must be told on which one it listens. JavaScript, because the benchmark runs without a build.
import { createServer } from 'node:net';

/**
 * Below the ports that the system gives to connections and to servers on port 0: any of them could take one of those
 * before it is used.
 * @returns {Promise<number>}
 */
export async function findFreePort() {
  const port = 10_000 + Math.floor(Math.random() * 20_000);
  const server = createServer();
  return new Promise((settle) => {
    server.once('error', () => settle(findFreePort()));
    server.listen(port, () => server.close(() => settle(port)));
  });
}

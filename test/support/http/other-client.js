// Thread: asks again and again, apart from a test that is busy itself, and tells each answer.
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

const { options, paths } = workerData;

/** @param {string} path @returns {Promise<unknown>} the status, or an error */
function ask(path) {
  return new Promise((settle) => {
    const sent = request({ ...options, path, agent: false }, (response) => {
      response.resume().on('end', () => settle(response.statusCode));
    });
    sent.on('error', ({ message }) => settle(message));
    sent.setTimeout(20_000, () => sent.destroy(new Error('no answer in 20 s'))).end();
  });
}

for (let number = 0; ; number += 1) {
  const path = paths[number % paths.length];
  const begun = performance.now();
  const status = await ask(path);
  parentPort?.postMessage({ path, status, wait: performance.now() - begun });
  await sleep(50);
}

// npm run bench: installs what only the benchmark needs on first use, then measures.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));

if (!isInstalled()) {
  console.log('installing the peers of the benchmark ...');
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) process.exit(1);
}
await import('./run.js');

/** Whether the installed versions are those of bench/package.json, which names them exactly. */
function isInstalled() {
  const { dependencies } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'));
  return Object.entries(dependencies).every(([name, version]) => {
    const file = `${folder}node_modules/${name}/package.json`;
    return existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).version === version;
  });
}

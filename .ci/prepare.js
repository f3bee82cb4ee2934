// Runs at the end of npm ci: builds, and prints nothing unless it fails. With --omit=dev or NODE_ENV=production the
// packages for building are missing, which must not fail the installation.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

if (existsSync('node_modules/esbuild')) {
  const { status, stdout, stderr } = spawnSync('npm', ['run', 'build'], { encoding: 'utf8' });
  if (status !== 0) console.error(`${stdout}${stderr}`);
  process.exitCode = status ?? 1;
} else {
  console.log(
    'Not built, since the development packages are not installed. Where they are, "npm run package" makes a folder that runs without them.',
  );
}

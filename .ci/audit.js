// npm run audit: known vulnerabilities of the packages that dist/ bundles. npm audit alone cannot say which those are:
// all packages are development dependencies. It exits with 1 if there are any, and with 0 if no registry answers.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** @type {{ components: { name: string }[] }} */
const { components } = JSON.parse(readFileSync(`${root}dist/sbom.cdx.json`, 'utf8'));
const names = new Set(components.map(({ name }) => name));
const { stdout } = spawnSync('npm', ['audit', '--json', '--package-lock-only'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 2 ** 26,
});
/** @type {{ message?: string, vulnerabilities?: Record<string, { severity: string, via: (string | { title: string, url: string })[] }> }} */
const { message, vulnerabilities } = JSON.parse(stdout);
if (vulnerabilities === undefined) {
  console.log(`Not audited, since the registry did not answer: ${message}`);
} else {
  const found = Object.entries(vulnerabilities).filter(([name]) => names.has(name));
  for (const [name, { severity, via }] of found) {
    const reasons = via.map((one) => (typeof one === 'string' ? one : `${one.title} (${one.url})`));
    console.log(`${name}: ${severity}: ${reasons.join('; ')}`);
  }
  console.log(`${names.size} bundled packages, ${found.length} with known vulnerabilities.`);
  process.exitCode = found.length > 0 ? 1 : 0;
}

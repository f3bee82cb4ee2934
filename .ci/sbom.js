// The software bill of materials of dist/: of npm's, which has all packages of the lock, those that are bundled.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Without time and serial number: the same sources give the same file.
 * @param {readonly { name: string, version: string }[]} bundled
 * @returns {object} a document of CycloneDX 1.5
 * @throws if npm lacks a bundled package
 * @see https://cyclonedx.org/docs/1.5/json/
 */
export function listComponents(bundled) {
  const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx'];
  const { serialNumber, metadata, components, dependencies, ...rest } = JSON.parse(
    execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 }),
  );
  const { timestamp, component, ...about } = metadata;
  // npm names it after the folder.
  const { name } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
  const refs = new Set(bundled.map((one) => `${one.name}@${one.version}`));
  /** @param {string} ref */
  const isBundled = (ref) => refs.has(ref);
  const found = components.filter((/** @type {any} */ one) => isBundled(one['bom-ref']));
  const missing = [...refs].filter(
    (ref) => !found.some((/** @type {any} */ one) => one['bom-ref'] === ref),
  );
  if (missing.length > 0) throw new Error(`npm sbom lacks ${missing.join(', ')}.`);
  return {
    ...rest,
    metadata: { ...about, component: { ...component, type: 'application', name } },
    // Development dependencies of this package, but a part of what runs.
    components: found.map((/** @type {object} */ one) => ({
      ...one,
      scope: 'required',
      properties: [],
    })),
    dependencies: [
      { ref: component['bom-ref'], dependsOn: [...refs] },
      ...dependencies
        .filter((/** @type {any} */ { ref }) => isBundled(ref))
        .map((/** @type {any} */ { ref, dependsOn }) => ({
          ref,
          dependsOn: dependsOn.filter(isBundled),
        })),
    ],
  };
}

// Certificates of the tests, by openssl: PostgreSQL of Debian, which CI installs, brings it.
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';

export const hasOpenSsl = spawnSync('openssl', ['version']).status === 0;

/** Writes `name.crt` and `name.key`, signed by the authority of that name in the folder, or by itself. */
export function makeCertificate(
  folder: string,
  name: string,
  {
    subject,
    hosts = [],
    authority,
  }: { readonly subject: string; readonly hosts?: readonly string[]; readonly authority?: string },
): void {
  const fileOf = (file: string) => join(folder, file);
  const parent = authority
    ? ['-CA', fileOf(`${authority}.crt`), '-CAkey', fileOf(`${authority}.key`)]
    : [];
  const alternatives = hosts.map((host) => `DNS:${host}`).join();
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-days', '2', '-subj', `/CN=${subject}`],
      ...(alternatives ? ['-addext', `subjectAltName=${alternatives}`] : []),
      ...['-out', fileOf(`${name}.crt`), '-keyout', fileOf(`${name}.key`), ...parent],
    ],
    { stdio: 'pipe' },
  );
}

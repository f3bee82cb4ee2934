// outfit-gateway token: a bearer token for local use, signed with AUTH_JWT_SECRET.
import { SignJWT } from 'jose';
import { ConfigError, readConfig } from '../config.ts';
import { readArgumentsAndSettings, settingsHelp } from './arguments.ts';
import type { Io } from './command.ts';

export const help = `Usage: outfit-gateway token --user ID [--hours N]

Prints a bearer token that names the user with that id, for trying things out. It is signed with
AUTH_JWT_SECRET, has AUTH_ISSUER and AUTH_AUDIENCE if they are set, and holds for 24 hours, or N.

${settingsHelp}
Exit code: 0 it is printed, 2 it cannot be made.
`;

export const failureCode = 2;

export async function run(io: Io): Promise<number> {
  const { values, env } = readArgumentsAndSettings(
    io,
    { user: { type: 'string' }, hours: { type: 'string', default: '24' } },
    false,
  );
  const user = wholeNumber('--user', values.user, 2_147_483_647);
  const hours = wholeNumber('--hours', values.hours, 87_600);
  const { authAudience, authIssuer, authJwtSecret } = readConfig(env);
  if (authJwtSecret === undefined) {
    throw new ConfigError(
      'AUTH_JWT_SECRET is not set, so there is nothing to sign a token with: set it to the secret of the gateway.',
    );
  }
  const token = new SignJWT()
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(String(user))
    .setIssuedAt()
    .setExpirationTime(`${hours} hours`);
  if (authIssuer !== undefined) token.setIssuer(authIssuer);
  if (authAudience !== undefined) token.setAudience(authAudience);
  io.stdout.write(`${await token.sign(new TextEncoder().encode(authJwtSecret))}\n`);
  return 0;
}

function wholeNumber(option: string, text: string | undefined, max: number): number {
  const number = /^\d{1,10}$/.test(text ?? '') ? Number(text) : Number.NaN;
  if (number >= 1 && number <= max) return number;
  const given = text === undefined ? 'missing' : JSON.stringify(text);
  throw new ConfigError(`${option} is ${given}, but it must be a whole number from 1 to ${max}.`);
}

// outfit-gateway token: a bearer token for local use, signed with AUTH_JWT_SECRET.
import { SignJWT } from 'jose';
import { ConfigError, readConfig } from '../config/config.ts';
import { wholeNumber } from '../config/values.ts';
import type { Io } from './command.ts';
import { createLine, optional, required, type ValuesOf } from './options/command-line.ts';

const options = {
  user: required('--user <ID>', 'id of the user', wholeNumber(1, 2_147_483_647)),
  hours: optional(24, '--hours <N>', 'how long the token is valid', wholeNumber(1, 87_600)),
};

export const line = () =>
  createLine('token', options).description(
    'Prints a bearer token that names a user, for trying things out. It is signed with AUTH_JWT_SECRET, and has AUTH_ISSUER and AUTH_AUDIENCE if they are set. AUTH_USER_CLAIM is the claim that names the user.',
  );

export async function run(
  { env, stdout }: Io,
  { user, hours }: ValuesOf<typeof options>,
): Promise<number> {
  const { authAudience, authIssuer, authJwtSecret, authUserClaim } = readConfig(env);
  if (authJwtSecret === undefined) {
    throw new ConfigError(
      'AUTH_JWT_SECRET is not set, so there is nothing to sign a token with: set it to the secret of the gateway.',
    );
  }
  const token = new SignJWT({ [authUserClaim]: String(user) })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuedAt()
    .setExpirationTime(`${hours} hours`);
  if (authIssuer !== undefined) token.setIssuer(authIssuer);
  if (authAudience !== undefined) token.setAudience(authAudience);
  stdout.write(`${await token.sign(new TextEncoder().encode(authJwtSecret))}\n`);
  return 0;
}

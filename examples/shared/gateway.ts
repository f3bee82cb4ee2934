// Where the gateway is, and who is signed in.

export const endpoint = `${import.meta.env.VITE_GATEWAY ?? 'http://localhost:4000'}/graphql`;

/** In an app of your own, the sign-in sets it, and sets it again before it expires. Here: /apollo/#token=… */
const session = { token: new URLSearchParams(location.hash.slice(1)).get('token') };

/** The header, read for each request, so that a renewed token counts from the next one on. */
export function authorization(): Record<string, string> {
  return session.token ? { authorization: `Bearer ${session.token}` } : {};
}

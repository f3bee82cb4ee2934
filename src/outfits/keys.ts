// Files are stored by their key, the path below the host that serves them.

export const uuid = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';
export const imageKey = new RegExp(`^outfits/${uuid}\\.(?:jpeg|png)$`);
export const videoKey = new RegExp(`^outfits_videos/${uuid}\\.mp4$`);
export const avatarKey = new RegExp(`^(?:|avatars/${uuid}\\.(?:jpeg|png|gif))$`);

/** What is left of a URL below `base`; anything else as it is. */
export function stripBase(text: string, base: string): string {
  return text.startsWith(`${base}/`) ? text.slice(base.length + 1) : text;
}

// Writes the demonstration set, as the gateway would export it, a hundred records in a line, and its pictures:
//   node --import tsx bench/outfits/write.ts
import { writeFileSync } from 'node:fs';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { formatTimestamp } from '../../src/outfits/timestamps.ts';
import { generateOutfits } from './generate.ts';
import { drawFace, drawOutfit } from './picture.ts';
import { createRandom, type Random } from './random.ts';

const file = new URL('../../src/process/demo/outfits.ndjson', import.meta.url);
const lineLength = 100;
const media = 'https://media.example.com';
const video = 'https://video.example.com';

const records = [...generateOutfits()].map(toRecord);
const lines: string[] = [];
for (let start = 0; start < records.length; start += lineLength) {
  lines.push(`${JSON.stringify(records.slice(start, start + lineLength))}\n`);
}
writeFileSync(file, lines.join(''));

const draw = (number: number, seed: number, drawOne: (random: Random) => string) =>
  Array.from({ length: number }, (_, index) => drawOne(createRandom(7, seed, index)));
const pictures = Array.from({ length: 6 }, (_, line) => ({
  outfits: draw(50, line, drawOutfit),
  avatars: draw(15, 100 + line, drawFace),
}));
writeFileSync(
  new URL('../../src/process/demo/pictures.ndjson', import.meta.url),
  pictures.map((line) => `${JSON.stringify(line)}\n`).join(''),
);

function toRecord({ user, ...row }: OutfitRow) {
  return {
    id: row.id,
    title: row.title,
    description: row.description,
    image_key: `${media}/${row.imageKey}`,
    image_original_url: `${media}/${row.imageOriginalKey}`,
    complete: row.complete,
    likes: row.likes,
    user: {
      id: user.id,
      avatar_key: user.avatarKey,
      username: user.username,
      first_name: user.firstName,
      last_name: user.lastName,
    },
    quality: row.quality,
    private: row.private,
    background_image: null,
    background_color: row.backgroundColor,
    video: row.videoKey && `${video}/${row.videoKey}`,
    play_video: row.playVideo,
    created: formatTimestamp(row.created),
    modified: formatTimestamp(row.modified),
    creation_device: row.creationDevice,
    modification_device: row.modificationDevice,
  };
}

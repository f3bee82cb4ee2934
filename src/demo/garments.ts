// The clothes of the demonstration's pictures, as paths of SVG. Each stands around its own origin: clothes
// hang from it, at the neck or the waist; shoes stand on it.

/** A piece, drawn in this order. */
export interface Garment {
  readonly outline: string;
  /** Parts in a second colour: collars, soles, bands. */
  readonly trim?: string;
  /** Straps and handles, in the colour of the piece. */
  readonly straps?: string;
  /** Seams and folds. */
  readonly lines?: string;
  /** Round buttons: each a path of no length. */
  readonly buttons?: string;
}

const collar = 'M-15 0L0 15-11 26-25 5ZM15 0L0 15 11 26 25 5Z';
const lapels = 'M-14 0L-29 14-22 30-27 35 0 72ZM14 0L29 14 22 30 27 35 0 72Z';

export const tops: readonly Garment[] = [
  // T-shirt
  {
    outline:
      'M-17 0Q0 14 17 0L40 7Q56 20 69 43L48 56 37 45 38 121Q0 127-38 121L-37 45-48 56-69 43Q-56 20-40 7Z',
    lines:
      'M-21 2Q0 21 21 2M-65 38L-45 51M65 38L45 51M-38 114Q0 120 38 114M37 45L34 32M-37 45L-34 32',
  },
  // Polo shirt
  {
    outline:
      'M-16 0H16L40 7Q56 20 67 45L47 56 37 46 39 122Q0 127-39 122L-37 46-47 56-67 45Q-56 20-40 7Z',
    trim: collar,
    lines: 'M-6 20V50H6V20M-64 40L-45 51M64 40L45 51M-38 115Q0 120 38 115',
    buttons: 'M0 30h0M0 41h0',
  },
  // Shirt
  {
    outline:
      'M-15 0H15L42 9Q55 50 63 106L46 110 35 54Q34 90 39 126 20 136 0 130-20 136-39 126-34 90-35 54L-46 110-63 106Q-55 50-42 9Z',
    trim: collar,
    lines: 'M-4 20V131M4 20V131M-62 97L-44 101M62 97L44 101M12 48H28V62L20 67 12 62Z',
    buttons: 'M0 34h0M0 54h0M0 74h0M0 94h0M0 114h0',
  },
  // Sweater
  {
    outline:
      'M-20 0Q0 10 20 0L45 9Q62 42 66 114L47 116 39 56 42 121Q0 128-42 121L-39 56-47 116-66 114Q-62 42-45 9Z',
    lines:
      'M-23 3Q0 20 23 3M-41 111Q0 118 41 111M-65 104L-46 106M65 104L46 106M-32 113v10M-22 115v9M-11 116v9M0 116v9M11 116v9M22 115v9M32 113v10',
  },
  // Turtleneck
  {
    outline:
      'M-16-15Q0-10 16-15L18 2 45 10Q61 42 65 114L47 116 38 56 40 122Q0 128-40 122L-38 56-47 116-65 114Q-61 42-45 10L-18 2Z',
    lines:
      'M-17-5Q0 0 17-5M-18 2Q0 10 18 2M-40 113Q0 119 40 113M-65 105L-47 107M65 105L47 107M-30 40Q0 44 30 40',
  },
  // Hoodie
  {
    outline:
      'M-24-6Q-22-26 0-26T24-6L46 10Q62 44 66 114L47 117 39 58 42 122Q0 129-42 122L-39 58-47 117-66 114Q-62 44-46 10Z',
    trim: 'M-17 4Q-18-18 0-18T17 4Q0 18-17 4Z',
    lines:
      'M-24 2Q0 34 24 2M-7 17V44M7 17V40M-24 96L-16 72H16L24 96V106H-24ZM-41 112Q0 119 41 112M-65 105L-46 108M65 105L46 108',
  },
  // Blouse with a bow
  {
    outline:
      'M-14 0L0 28 14 0 38 6Q68 14 72 64L46 76 36 50Q33 90 43 122 0 134-43 122-33 90-36 50L-46 76-72 64Q-68 14-38 6Z',
    trim: 'M0 28L-20 19Q-24 32-17 40ZM0 28L20 19Q24 32 17 40ZM0 28L-10 66-3 68 1 34 7 66 13 63Z',
    lines:
      'M-71 57L-44 68M71 57L44 68M-38 16Q-46 24-46 40M38 16Q46 24 46 40M-20 124Q-16 100-20 84M20 124Q16 100 20 84',
  },
  // Camisole
  {
    outline:
      'M-25-4H-21Q-18 24 0 30 18 24 21-4H25Q25 26 37 38L41 116Q0 126-41 116L-37 38Q-25 26-25-4Z',
    lines:
      'M-34 38Q-16 30 0 36 16 30 34 38M-41 110Q0 120 41 110M-12 116Q-9 80-12 60M16 116Q13 90 15 70',
  },
  // Cardigan
  {
    outline:
      'M-16 0L-1 50V126Q-22 128-42 122L-38 56-47 116-65 114Q-61 42-44 9ZM16 0L1 50V126Q22 128 42 122L38 56 47 116 65 114Q61 42 44 9Z',
    lines:
      'M-21 1L-6 51V126M21 1L6 51V126M-64 104L-46 106M64 104L46 106M-35 90H-16V112H-35M35 90H16V112H35',
    buttons: 'M-3 60h0M-3 80h0M-3 100h0M-3 118h0',
  },
  // Bomber jacket
  {
    outline:
      'M-18-4Q0 2 18-4L46 9Q64 44 66 106L46 110 40 58 43 116Q0 122-43 116L-40 58-46 110-66 106Q-64 44-46 9Z',
    trim: 'M-18-4Q0 2 18-4L20 4Q0 13-20 4ZM-43 106Q0 113 43 106V117Q0 124-43 117ZM-66 97L-45 101-46 111-66 107ZM66 97L45 101 46 111 66 107Z',
    lines: 'M0 9V108M-32 70L-16 90M32 70L16 90',
  },
];

export const jackets: readonly Garment[] = [
  // Blazer
  {
    outline:
      'M-14 0H14L46 10Q61 50 65 118L46 122 39 58Q38 100 46 136 24 146 0 138-24 146-46 136-38 100-39 58L-46 122-65 118Q-61 50-46 10Z',
    trim: 'M-13 0H13L0 70Z',
    lines: `${lapels}M0 72V138M-38 102H-16M38 102H16M18 48L30 46`,
    buttons: 'M5 84h0M5 104h0',
  },
  // Coat
  {
    outline:
      'M-14 0H14L47 10Q63 60 66 144L47 147 41 62Q42 140 54 214 26 224 0 218-26 224-54 214-42 140-41 62L-47 147-66 144Q-63 60-47 10Z',
    trim: 'M-13 0H13L0 66Z',
    lines: `${lapels}M0 72V218M-36 140L-20 136V152M36 140L20 136V152M-41 108H41M-42 116H42`,
    buttons: 'M-9 88h0M9 88h0M-9 128h0M9 128h0',
  },
];

export const bottoms: readonly Garment[] = [
  // Trousers with a crease
  {
    outline: 'M-34 0H34Q42 60 40 152H11L0 50-11 152H-40Q-42 60-34 0Z',
    lines: 'M-35 10H35M0 10V50M-22 30L-26 150M22 30L26 150M-34 14L-28 32M34 14L28 32',
  },
  // Wide trousers
  {
    outline: 'M-31 0H31Q38 40 60 154 34 160 9 154L0 52-9 154Q-34 160-60 154-38 40-31 0Z',
    lines: 'M-32 11H32M0 11V52M-17 14L-36 154M17 14L36 154M-8 11L-14 40M8 11L14 40',
  },
  // Jeans
  {
    outline: 'M-35 0H35Q42 60 38 152H12L0 54-12 152H-38Q-42 60-35 0Z',
    lines:
      'M-36 9H36M0 9V54M0 42Q9 36 8 9M-37 12Q-20 32-17 9M37 12Q20 32 17 9M-38 145H-12M38 145H12M-33 60Q-24 64-14 58M33 60Q24 64 14 58',
    buttons: 'M3 5h0',
  },
  // Tapered trousers
  {
    outline: 'M-34 0H34Q52 60 30 150H13L0 56-13 150H-30Q-52 60-34 0Z',
    lines: 'M-35 11H35M0 11V56M-30 142H-13M30 142H13M-36 14L-26 36M36 14L26 36',
    trim: 'M-4 10H-1L-7 40H-11ZM1 10H4L11 36H7Z',
  },
  // Shorts
  {
    outline: 'M-35 0H35Q44 40 50 78 28 84 6 78L0 46-6 78Q-28 84-50 78-44 40-35 0Z',
    lines:
      'M-36 10H36M0 10V46M-49 69Q-28 75-6 69M49 69Q28 75 6 69M-38 14Q-24 30-20 10M38 14Q24 30 20 10',
  },
  // Pencil skirt
  {
    outline: 'M-30 0H30Q46 40 37 122 0 127-37 122-46 40-30 0Z',
    lines: 'M-31 9H31M0 9V60M12 124V92M-18 12L-22 30M18 12L22 30',
  },
  // A-line skirt
  {
    outline: 'M-28 0H28L64 112Q0 132-64 112Z',
    lines: 'M-30 9H30M-12 12Q-18 70-28 118M12 12Q18 70 28 118M0 60V122',
    buttons: 'M0 22h0M0 38h0M0 54h0',
  },
  // Pleated skirt
  {
    outline:
      'M-27 0H27L68 118 54 125 46 119 31 128 24 122 8 130 0 123-8 130-24 122-31 128-46 119-54 125-68 118Z',
    lines: 'M-28 9H28M-19 9L-46 119M-10 9L-24 122M0 9V123M10 9L24 122M19 9L46 119',
  },
  // Tiered maxi skirt
  {
    outline: 'M-26 0H26Q30 30 42 52L50 100 62 156Q0 172-62 156L-50 100-42 52Q-30 30-26 0Z',
    lines:
      'M-27 9H27M-42 52Q0 64 42 52M-50 102Q0 116 50 102M-20 60L-26 98M18 60L22 104M-30 112L-36 154M28 112L34 154M0 116V160',
  },
];

export const dresses: readonly Garment[] = [
  // Slip dress
  {
    outline:
      'M-23-4H-19Q-15 28 0 36 15 28 19-4H23Q24 28 35 42 26 90 40 136 58 190 58 236 0 252-58 236-58 190-40 136-26 90-35 42-24 28-23-4Z',
    lines:
      'M-33 43Q-16 34 0 42 16 34 33 43M-14 240Q-18 180-6 120M24 240Q30 190 14 130M-57 228Q0 244 57 228',
  },
  // Dress with a wide skirt
  {
    outline:
      'M-18 0Q0 16 18 0L39 6Q52 20 61 40L44 52 34 44Q33 74 27 94 62 150 80 208 0 236-80 208-62 150-27 94-33 74-34 44L-44 52-61 40Q-52 20-39 6Z',
    trim: 'M-27 90Q0 94 27 90L28 100Q0 104-28 100Z',
    lines:
      'M-22 2Q0 23 22 2M-14 103Q-24 160-40 218M14 103Q24 160 40 218M0 103V224M-57 36L-41 47M57 36L41 47',
  },
  // Wrap dress
  {
    outline:
      'M-16 0L2 44 16 0 43 9Q57 46 62 100L46 103 35 54Q34 80 29 98 46 160 54 224 20 238-54 226-44 160-29 98-34 80-35 54L-46 103-62 100Q-57 46-43 9Z',
    trim: 'M-29 94Q0 98 29 93L29 102Q0 106-29 102ZM16 99L34 142 25 144 11 101Z',
    lines: 'M-16 0L2 44 26 93M10 104Q26 170 8 234M-10 104Q-22 160-30 228M-61 92L-45 95M61 92L45 95',
  },
  // Shirt dress
  {
    outline:
      'M-15 0H15L42 9Q56 50 61 92L45 96 35 52Q33 82 29 102 50 160 54 222 28 232 0 226-28 232-54 222-50 160-29 102-33 82-35 52L-45 96-61 92Q-56 50-42 9Z',
    trim: `${collar}M-29 99Q0 103 29 99V109Q0 113-29 109Z`,
    lines: 'M-4 20V226M4 20V226M-60 84L-44 88M60 84L44 88M-20 114L-34 226M20 114L34 226',
    buttons: 'M0 36h0M0 58h0M0 80h0M0 128h0M0 152h0M0 176h0M0 200h0',
  },
  // Summer dress with tiers
  {
    outline:
      'M-27-4H-19L-16 26Q0 20 16 26L19-4H27Q26 24 33 36L30 84Q40 110 50 132L60 182 72 232Q0 254-72 232L-60 182-50 132Q-40 110-30 84L-33 36Q-26 24-27-4Z',
    lines:
      'M-32 38Q0 30 32 38M-30 84Q0 92 30 84M-50 132Q0 148 50 132M-60 182Q0 200 60 182M-16 92L-24 136M16 92L24 136M-28 146L-34 186M28 146L34 186M0 146V192M-40 196L-46 234M40 196L46 234M0 200V242',
  },
  // Jumpsuit
  {
    outline:
      'M-15 0L0 34 15 0 38 6 36 50Q34 78 30 96 42 150 50 240 28 246 10 240L0 146-10 240Q-28 246-50 240-42 150-30 96-34 78-36 50L-38 6Z',
    trim: 'M-30 92Q0 96 30 92V102Q0 106-30 102Z',
    lines:
      'M0 34V92M0 104V146M-21 110L-30 240M21 110L30 240M-32 112Q-24 124-20 106M32 112Q24 124 20 106',
  },
];

export const shoes: readonly Garment[] = [
  // Sneaker
  {
    outline: 'M-29-3Q-32-16-28-27-20-22-10-30L4-15Q16-13 27-11 32-8 32-3Z',
    trim: 'M-31-5H33Q35 4 28 4H-27Q-33 4-31-5Z',
    lines: 'M-10-22L-3-26M-5-17L2-21M1-13L7-17M-28-18Q-20-14-18-5M18-12Q18-8 14-5',
  },
  // Pump
  {
    outline:
      'M-30-29Q-22-24-14-25-2-11 12-12 30-10 35 0L34 3H14Q-8-2-19-15L-23 4H-27Q-28-14-30-29Z',
    lines: 'M-19-15Q-24-18-28-18',
  },
  // Loafer
  {
    outline: 'M-29-1Q-31-12-28-21-22-18-15-19L-2-21Q6-15 18-14 30-11 32-1Z',
    trim: 'M-31-3H34V3H-12V6H-30Z',
    lines: 'M-15-19Q-8-12 4-14M-4-9Q4-16 12-13L10-6',
  },
  // Sandal
  {
    outline: 'M-31-4Q0-7 34-3V3H-12L-13 7H-31ZM-30-5L-27-24H-22L-21-5ZM6-5L10-14Q18-17 24-12L28-4Z',
    lines: 'M-28-19Q-14-26-4-12L-1-5M16-14L19-4',
  },
];

export const boots: readonly Garment[] = [
  // Ankle boot
  {
    outline: 'M-26-2Q-28-30-27-58H-1Q-3-40 0-28 24-24 29-8V-2Z',
    trim: 'M-28-4H31V1H-8L-10 7H-28Z',
    lines: 'M-27-52H-1M-20-52Q-18-40-14-30-8-38-8-52',
  },
  // High boot
  {
    outline: 'M-24-2Q-28-44-27-86H3Q1-50-1-30 24-26 29-9V-2Z',
    trim: 'M-26-4H31V1H-8L-10 8H-26Z',
    lines: 'M-27-79H3M-20-30Q-10-24-1-30',
  },
];

export const bags: readonly Garment[] = [
  // Tote bag
  {
    outline: 'M-29-8H29L33 46Q0 50-33 46Z',
    straps: 'M-15-7Q-15-42 0-42T15-7',
    lines: 'M-29 2H29M-20 2V12M20 2V12',
  },
  // Shoulder bag
  {
    outline: 'M-27 0Q0-4 27 0L29 26Q28 38 16 38H-16Q-28 38-29 26Z',
    trim: 'M-27 0Q0-4 27 0L28 10Q0 28-28 10Z',
    straps: 'M-25 2Q-34-56 0-56T25 2',
    buttons: 'M0 17h0',
  },
  // Handbag
  {
    outline: 'M-24-4H24L34 38Q0 44-34 38Z',
    trim: 'M-4-4H4V10H-4Z',
    straps: 'M-14-3Q-14-30 0-30T14-3',
    lines: 'M-27 6H-4M4 6H27M-33 33Q0 39 33 33',
  },
  // Bucket bag
  {
    outline: 'M-24-6Q0-14 24-6L26 40Q0 48-26 40Z',
    straps: 'M-18-7Q-12-52 0-52T18-7',
    lines: 'M-24 2Q0-4 24 2M-8 0L-12 22M8 0L12 20',
    buttons: 'M-12 24h0M12 22h0',
  },
];

export const extras: readonly Garment[] = [
  // Hat
  {
    outline: 'M-42 8Q-44-4-22-4-22-32 0-32T22-4Q44-4 42 8 0 18-42 8Z',
    trim: 'M-22-11Q0-4 22-11V-2Q0 6-22-2Z',
  },
  // Cap
  {
    outline: 'M-28 4Q-30-26 0-27 26-26 27 0 44 2 49 11 26 6 4 8-12 9-28 4Z',
    lines: 'M0-27Q-10-14-9 8M27 0Q12-2 4 8',
    buttons: 'M0-28h0',
  },
  // Woollen hat
  {
    outline: 'M-25 2Q-28-36 0-37 28-36 25 2ZM-8-42A8 8 0 1 1 8-42 8 8 0 1 1-8-42Z',
    trim: 'M-28-3Q0 4 28-3L28 12Q0 19-28 12Z',
    lines: 'M-14 2Q-16-22-8-36M0 3V-36M14 2Q16-22 8-36',
  },
  // Sunglasses
  {
    outline: 'M-34-8H-3Q-2 14-18 14T-34-8ZM34-8H3Q2 14 18 14T34-8Z',
    straps: 'M-34-8L-40-22M34-8L40-22M-3-5Q0-9 3-5',
    lines: 'M-28-3L-20 6M9-3L17 6',
  },
  // Watch
  {
    outline: 'M-7-38H7L8-14Q15-8 15 0T8 14L7 38H-7L-8 14Q-15 8-15 0T-8-14Z',
    trim: 'M-11 0A11 11 0 1 1 11 0 11 11 0 1 1-11 0Z',
    lines: 'M0-7V0L5 3M-6 24H6M-6 30H6',
  },
  // Belt
  {
    outline: 'M-30 0A30 30 0 1 1 30 0 30 30 0 1 1-30 0ZM-21 0A21 21 0 1 0 21 0 21 21 0 1 0-21 0Z',
    trim: 'M-9 18H9V34H-9ZM-5 22V30H5V22Z',
  },
];

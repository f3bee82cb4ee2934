/** A name as it is shown and the letters it gives to a username. */
export interface Name {
  readonly shown: string;
  readonly handle: string;
}

/** What people who write one language call themselves and what they write about their outfits. */
export interface Language {
  readonly givenNames: readonly Name[];
  readonly familyNames: readonly Name[];
  readonly titles: readonly string[];
  readonly clothes: readonly string[];
  /** What goes with the clothes: shoes, hats, bags. */
  readonly extras: readonly string[];
  /** Where a piece comes from or how it is worn. */
  readonly stories: readonly string[];
  /** What can be said of any outfit, and questions to the reader. */
  readonly closings: readonly string[];
  readonly hashtags: readonly string[];
  /** What stands between two sentences. */
  readonly space: string;
}

/** Reads `shown=handle` pairs; without a handle, the shown name in lower case is the handle. */
function readNames(text: string): Name[] {
  return text.split(' ').map((pair) => {
    const [shown = '', handle = shown.toLowerCase()] = pair.split('=');
    return { shown, handle };
  });
}

/** English, the language most outfits are described in. */
export const english: Language = {
  givenNames: readNames('Amelia Harper Isla Maya Noah Oliver Ruby Theo'),
  familyNames: readNames("Bennett Clarke O'Neill=oneill Okafor Whitfield"),
  titles: [
    'First warm day of the year',
    'Back to the office',
    'Sunday market look',
    'Thrifted from head to toe',
    'Airport outfit, eight hours of comfort',
    'Date night, but make it cosy',
    'All black, always',
    'Wedding guest, third time this summer',
    'Rainy day layers',
    'Double denim and no regrets',
    'Mixing prints on purpose',
    'Gallery opening',
    'My capsule wardrobe, day 12',
    'Farewell to summer',
    'Golden hour in the old town',
    'Coffee run',
    'Festival ready',
    'Desk to dinner',
    'Borrowed from my grandfather',
    'Winter whites',
    'Picnic in the park',
    'The coat that took two months to sew',
    'Pastels, finally',
    'One dress, three ways',
  ],
  clothes: [
    'Camel coat',
    'Linen shirt',
    'Pleated midi skirt',
    'Vintage leather jacket',
    'Wide-leg trousers',
    'Chunky knit',
    'Denim shirt',
    'Navy blazer',
    'Slip dress',
    'Corduroy overshirt',
    'Cropped cardigan',
    'Tweed jacket',
    'Striped tee',
  ],
  extras: [
    'White trainers',
    'Canvas tote',
    'Gold hoops',
    'Silk scarf',
    'Chelsea boots',
    'Straw hat',
    'Velvet loafers',
  ],
  stories: [
    'Found the jacket in a charity shop for next to nothing.',
    'The trousers are a size up, worn with a belt.',
    "The bag is my sister's, and she wants it back.",
    'The whole look cost less than the taxi home.',
    'Dyed it myself with onion skins and tea.',
    'Kept everything neutral and let the shoes do the talking.',
    "I've worn this bag every day for a month.",
    'The shirt is my own pattern, finally finished!',
    'Same coat as last year, new scarf.',
    'Everything second-hand except the socks.',
    'Ask me about the earrings, they were a gift.',
    'Took the hem up by hand, and it shows a little.',
  ],
  closings: [
    'Perfect for a day that starts cold and ends in the sun.',
    'Comfortable enough to walk twelve kilometres in.',
    'Would you wear it with boots or with sandals?',
    'Layering is the only way to survive this spring.',
    'It has pockets. Enough said.',
    'The colour is even better in daylight.',
    'Trying to wear more green this season.',
    'Simple, warm and ready in five minutes.',
    'Tell me what you would change.',
  ],
  hashtags: ['ootd', 'thrifted', 'streetstyle', 'capsulewardrobe', 'slowfashion', 'workwear'],
  space: ' ',
};

/** Every language; between them they use the scripts that a listing meets. */
export const languages: readonly Language[] = [
  english,
  {
    givenNames: readNames(
      'Zoé=zoe Léa=lea Chloé=chloe Inès=ines Théo=theo Hélène=helene Jérôme=jerome Maël=mael',
    ),
    familyNames: readNames('Lefèvre=lefevre Moreau Garçon=garcon Bélanger=belanger Noël=noel'),
    titles: [
      'Dimanche à la brocante',
      'Déjeuner en terrasse',
      'Été indien',
      'Prête pour la rentrée',
      'Une soirée à l’opéra',
      'Tenue de fête, très simple',
    ],
    clothes: ['Trench beige', 'Marinière', 'Jean brut', 'Robe à fleurs'],
    extras: ['Béret rouge', 'Mocassins'],
    stories: [
      'La veste vient d’une friperie près de chez moi.',
      'Le pull a été tricoté par ma grand-mère.',
    ],
    closings: [
      'Idéal pour les journées fraîches à Paris.',
      'J’adore cette couleur, ça change du noir !',
      'Vous préférez avec des bottes ou des baskets ?',
    ],
    hashtags: ['mode', 'tenuedujour', 'friperie', 'été'],
    space: ' ',
  },
  {
    givenNames: readNames(
      'Sofía=sofia Lucía=lucia Martín=martin Inés=ines Andrés=andres Belén=belen Iñaki=inaki Noa',
    ),
    familyNames: readNames('Muñoz=munoz García=garcia Peña=pena Ibáñez=ibanez Solís=solis'),
    titles: [
      'Paseo por la playa',
      'Mañana de otoño',
      'Lista para la oficina',
      'Cena con amigas',
      '¡Por fin es viernes!',
      'Un vestido, tres estilos',
    ],
    clothes: ['Camisa de lino', 'Falda plisada', 'Vaqueros', 'Americana azul'],
    extras: ['Botines', 'Pañuelo'],
    stories: [
      'La chaqueta era de mi madre y todavía está como nueva.',
      'Todo de segunda mano, menos los zapatos.',
    ],
    closings: [
      '¿Con sandalias o con zapatillas?',
      'Cómodo para pasear todo el día por Málaga.',
      'El color es aún más bonito al sol.',
    ],
    hashtags: ['moda', 'lookdeldía', 'otoño', 'estilo'],
    space: ' ',
  },
  {
    givenNames: readNames(
      'João=joao Inês=ines Beatriz Luísa=luisa Tomás=tomas Conceição=conceicao Rui Antónia=antonia',
    ),
    familyNames: readNames('Gonçalves=goncalves Simões=simoes Araújo=araujo Leão=leao Silva'),
    titles: [
      'Verão em Lisboa',
      'Domingo na praça',
      'Pronta para o trabalho',
      'Coração tropical',
      'Manhã de café',
      'Noite de São João',
    ],
    clothes: ['Calças largas', 'Blusa de algodão', 'Casaco bordô', 'Saia midi'],
    extras: ['Tênis branco', 'Bolsa de palha'],
    stories: ['Comprei o casaco numa feira em Belém.', 'As calças são da minha irmã!'],
    closings: [
      'Conforto em primeiro lugar, sempre.',
      'Não há nada melhor do que linho no verão.',
      'O que vocês mudariam?',
    ],
    hashtags: ['moda', 'lookdodia', 'verão', 'brechó'],
    space: ' ',
  },
  {
    givenNames: readNames(
      'Jörg=joerg Käthe=kaethe Anneliese Björn=bjoern Lukas Mareike Sönke=soenke Zoë=zoe',
    ),
    familyNames: readNames('Müller=mueller Weiß=weiss Krüger=krueger Schäfer=schaefer Vogt'),
    titles: [
      'Herbstspaziergang',
      'Schön warm eingepackt',
      'Fürs Büro',
      'Flohmarktfund der Woche',
      'Ganz in Weiß',
      'Übergangszeit',
    ],
    clothes: ['Wollmantel', 'Grüner Pullover', 'Weiße Bluse', 'Jeansjacke'],
    extras: ['Lederstiefel', 'Mütze'],
    stories: [
      'Der Mantel ist vom Flohmarkt und passt wie angegossen.',
      'Die Schuhe trage ich seit fünf Jahren.',
      'Selbst genäht, mit großen Taschen!',
    ],
    closings: ['Für kühle Tage genau das Richtige.', 'Würdet ihr dazu einen Gürtel tragen?'],
    hashtags: ['mode', 'flohmarktliebe', 'nachhaltig', 'gemütlich'],
    space: ' ',
  },
  {
    givenNames: readNames(
      'Łukasz=lukasz Małgosia=malgosia Zofia Żaneta=zaneta Bożena=bozena Jędrzej=jedrzej Ewa Iga',
    ),
    familyNames: readNames('Wójcik=wojcik Dąbek=dabek Król=krol Zięba=zieba Maślak=maslak'),
    titles: [
      'Jesienny spacer',
      'Niedziela w Łodzi',
      'Wełna i dżins',
      'Do pracy na rowerze',
      'Ciepło, cieplej, sweter',
      'Wieczór w teatrze',
    ],
    clothes: ['Żółty płaszcz', 'Dżinsy', 'Sweter w paski', 'Lniana koszula'],
    extras: ['Czarne botki', 'Wełniana czapka'],
    stories: [
      'Płaszcz znalazłam w lumpeksie za grosze.',
      'Sukienkę uszyła moja ciocia.',
      'Buty już trochę zdarte, ale ulubione.',
    ],
    closings: ['Idealne na chłodny poranek.', 'Co byście zmienili?'],
    hashtags: ['moda', 'jesień', 'stylizacja', 'drugiobieg'],
    space: ' ',
  },
  {
    givenNames: readNames(
      'Ayşe=ayse Çağla=cagla Gökçe=gokce İpek=ipek Ömer=omer Şule=sule Yağız=yagiz Deniz',
    ),
    familyNames: readNames('Yılmaz=yilmaz Öztürk=ozturk Çelik=celik Şahin=sahin Aydın=aydin'),
    titles: [
      'İstanbul’da bahar',
      'Ofise hazır',
      'Hafta sonu şıklığı',
      'Boğaz’da gün batımı',
      'Rahat ve şık',
      'Kış güneşi',
    ],
    clothes: ['Keten gömlek', 'Deri ceket', 'Çiçekli elbise', 'Bej trençkot'],
    extras: ['Beyaz spor ayakkabı', 'İpek fular'],
    stories: ['Ceketi ikinci el bir dükkânda buldum.', 'Çantayı annem ördü.'],
    closings: [
      'Serin akşamlar için birebir.',
      'Rengi gün ışığında daha güzel.',
      'Siz hangi ayakkabıyla giyerdiniz?',
    ],
    hashtags: ['moda', 'günlükstil', 'şıklık', 'ikinciel'],
    space: ' ',
  },
  {
    givenNames: readNames(
      'Ελένη=eleni Δήμητρα=dimitra Νίκος=nikos Σοφία=sofia Γιώργος=giorgos Ζωή=zoi Άρης=aris Μυρτώ=myrto',
    ),
    familyNames: readNames(
      'Ιωάννου=ioannou Παππάς=pappas Δήμου=dimou Λάμπρου=lamprou Αλεξίου=alexiou',
    ),
    titles: [
      'Καλοκαίρι στο νησί',
      'Βόλτα στην Αθήνα',
      'Έτοιμη για το γραφείο',
      'Λευκό και μπλε',
      'Βραδινή έξοδος',
      'Κυριακάτικο πρωινό',
    ],
    clothes: ['Λινό πουκάμισο', 'Μακριά φούστα', 'Τζιν μπουφάν'],
    extras: ['Ψάθινο καπέλο', 'Σανδάλια'],
    stories: ['Το φόρεμα το βρήκα σε μια μικρή αγορά.', 'Τα παπούτσια είναι τα αγαπημένα μου.'],
    closings: [
      'Ιδανικό για ζεστές μέρες.',
      'Εσείς πώς θα το φορούσατε;',
      'Απλό, άνετο και δροσερό.',
    ],
    hashtags: ['μόδα', 'στυλ', 'καλοκαίρι', 'ootd'],
    space: ' ',
  },
  {
    givenNames: readNames(
      'Анна=anna Мария=maria Дарья=darya Юлия=yulia Илья=ilya Алёна=alyona Фёдор=fyodor Ксения=ksenia',
    ),
    familyNames: readNames('Мороз=moroz Шевченко=shevchenko Ким=kim Бондарь=bondar Гоголь=gogol'),
    titles: [
      'Осенняя прогулка',
      'Образ на каждый день',
      'Первый снег',
      'Уютное воскресенье',
      'В театр',
      'Наконец-то весна!',
    ],
    clothes: ['Бежевое пальто', 'Вязаный свитер', 'Белая рубашка', 'Широкие брюки'],
    extras: ['Красный шарф', 'Кожаные ботинки'],
    stories: ['Пальто нашла в комиссионке, сидит идеально.', 'Свитер связала бабушка.'],
    closings: [
      'Тепло и удобно, что ещё нужно?',
      'Цвет вживую ещё красивее.',
      'С какой обувью вы бы это носили?',
    ],
    hashtags: ['мода', 'образдня', 'осень', 'стиль'],
    space: ' ',
  },
  {
    givenNames: readNames(
      'نور=noor ليلى=layla سارة=sara ياسمين=yasmin عمر=omar ريم=reem كريم=karim هدى=huda',
    ),
    familyNames: readNames('حداد=haddad منصور=mansour خوري=khoury ناصر=nasser صالح=saleh'),
    titles: [
      'إطلالة الصيف',
      'قهوة الصباح',
      'جاهزة للعمل',
      'أناقة بسيطة',
      'سهرة مع الأصدقاء',
      'ألوان الربيع',
    ],
    clothes: ['عباية كحلية', 'قميص كتان'],
    extras: ['حذاء أبيض', 'حقيبة جلدية', 'وشاح حرير'],
    stories: ['وجدت هذه السترة في سوق صغير.', 'الحقيبة هدية من أختي.'],
    closings: ['مريحة طوال اليوم.', 'اللون أجمل في ضوء الشمس.', 'ما رأيكم؟'],
    hashtags: ['موضة', 'أناقة', 'إطلالة_اليوم', 'صيف'],
    space: ' ',
  },
  {
    givenNames: readNames(
      'נועה=noa תמר=tamar יעל=yael איתן=eitan מאיה=maya שירה=shira דניאל=daniel רוני=roni',
    ),
    familyNames: readNames('לוי=levi כהן=cohen מזרחי=mizrahi פרץ=peretz שלום=shalom'),
    titles: [
      'שישי בתל אביב',
      'מוכנה למשרד',
      'קיץ בעיר',
      'ערב עם חברות',
      'לוק של סוף שבוע',
      'צבעים של אביב',
    ],
    clothes: ['שמלה פרחונית', 'חולצת פשתן', 'מעיל ארוך', 'ג׳ינס כחול'],
    extras: ['סנדלים', 'כובע קש'],
    stories: ['את המעיל מצאתי בשוק הפשפשים.', 'התיק של סבתא שלי.'],
    closings: ['נוח לכל היום.', 'הצבע יפה יותר באור יום.', 'מה דעתכם?'],
    hashtags: ['אופנה', 'סטייל', 'לוקיומי', 'קיץ'],
    space: ' ',
  },
  {
    givenNames: readNames(
      'प्रिया=priya अनन्या=ananya मीरा=meera आरव=aarav कविता=kavita रोहन=rohan दीया=diya ईशा=isha',
    ),
    familyNames: readNames('शर्मा=sharma वर्मा=verma गुप्ता=gupta जोशी=joshi मेहता=mehta'),
    titles: [
      'दिवाली की तैयारी',
      'रविवार की सुबह',
      'ऑफिस के लिए तैयार',
      'मेरी पसंदीदा साड़ी',
      'बारिश का मौसम',
      'शादी का दिन',
    ],
    clothes: ['सूती कुर्ता', 'नीली जींस', 'कढ़ाई वाली जैकेट', 'लाल साड़ी'],
    extras: ['रेशमी दुपट्टा', 'कोल्हापुरी चप्पल'],
    stories: ['यह दुपट्टा मेरी दादी का है।', 'जूते पुराने हैं, पर बहुत प्यारे।'],
    closings: ['पूरे दिन के लिए आरामदायक।', 'धूप में इसका रंग और भी सुंदर लगता है।', 'आपको कैसा लगा?'],
    hashtags: ['फैशन', 'साड़ी', 'देसी_स्टाइल', 'ootd'],
    space: ' ',
  },
  {
    givenNames: readNames(
      'มาลี=malee พลอย=ploy ณัฐ=nat ฟ้า=fah ใบเตย=baitoey ต้น=ton น้ำ=nam แพรว=praew',
    ),
    familyNames: readNames('สุขใจ=sukjai ทองดี=thongdee ศรีสุข=srisuk วงศ์งาม=wongngam แก้ว=kaew'),
    titles: ['วันสบาย ๆ', 'ไปคาเฟ่กัน', 'พร้อมไปทำงาน', 'เที่ยวทะเล', 'ลุควันอาทิตย์', 'สีพาสเทลหวาน ๆ'],
    clothes: ['เสื้อเชิ้ตลินิน', 'กระโปรงยาว', 'กางเกงยีนส์'],
    extras: ['รองเท้าผ้าใบ', 'หมวกสาน'],
    stories: ['ได้เสื้อตัวนี้มาจากตลาดนัด', 'กระเป๋าใบนี้แม่ทำให้'],
    closings: ['ใส่สบายทั้งวัน', 'สีสวยมากเวลาโดนแดด', 'ชอบกันไหมคะ'],
    hashtags: ['แฟชั่น', 'แต่งตัว', 'มือสอง', 'คาเฟ่'],
    space: ' ',
  },
  {
    givenNames: readNames(
      '雨桐=yutong 梓涵=zihan 欣怡=xinyi 浩然=haoran 思远=siyuan 晓梅=xiaomei 子轩=zixuan 静=jing',
    ),
    familyNames: readNames('王=wang 李=li 陈=chen 林=lin 赵=zhao'),
    titles: ['春日出游', '周末咖啡馆', '通勤穿搭', '复古风', '初雪的早晨', '今天也要好好穿衣服'],
    clothes: ['米色风衣', '亚麻衬衫', '百褶裙', '针织开衫', '阔腿裤'],
    extras: ['小白鞋', '草编包'],
    stories: ['外套是在二手店淘到的。', '包包是妈妈送的礼物。'],
    closings: ['穿一整天都很舒服。', '阳光下的颜色更好看！', '你们会怎么搭配？'],
    hashtags: ['穿搭', '每日穿搭', '二手好物', '春天'],
    space: '',
  },
  {
    givenNames: readNames(
      'さくら=sakura 陽菜=hina 結衣=yui 蓮=ren ひなた=hinata 美咲=misaki 大輝=daiki ユキ=yuki',
    ),
    familyNames: readNames('佐藤=sato 鈴木=suzuki 高橋=takahashi 小林=kobayashi 渡辺=watanabe'),
    titles: [
      '秋のお出かけコーデ',
      '雨の日スタイル',
      'カフェ日和',
      'モノトーンでまとめました',
      'はじめての浴衣',
      'オフィスカジュアル',
    ],
    clothes: ['ベージュのコート', 'デニムシャツ', 'プリーツスカート'],
    extras: ['白スニーカー', 'ニット帽'],
    stories: ['ジャケットは古着屋さんで見つけました。', 'バッグは母からのプレゼント。'],
    closings: [
      '一日中歩いても疲れません。',
      '色違いもほしいくらいお気に入りです！',
      '靴はどちらがいいと思いますか？',
    ],
    hashtags: ['今日のコーデ', '古着', 'お洒落さんと繋がりたい', 'コーデ'],
    space: '',
  },
  {
    givenNames: readNames(
      '서연=seoyeon 민지=minji 하은=haeun 지우=jiwoo 도윤=doyun 수빈=subin 예린=yerin 현우=hyunwoo',
    ),
    familyNames: readNames('김=kim 이=lee 박=park 최=choi 정=jung'),
    titles: ['가을 산책', '출근룩', '주말 카페', '첫눈 오는 날', '미니멀 데일리룩', '봄바람'],
    clothes: ['베이지 코트', '린넨 셔츠', '와이드 팬츠', '니트 조끼'],
    extras: ['하얀 운동화', '울 머플러'],
    stories: ['재킷은 빈티지 가게에서 샀어요.', '가방은 언니가 준 선물이에요.'],
    closings: [
      '하루 종일 입어도 편해요.',
      '햇빛 아래에서 색이 더 예뻐요!',
      '어떤 신발이 더 어울릴까요?',
    ],
    hashtags: ['데일리룩', '오오티디', '가을코디', '빈티지'],
    space: ' ',
  },
];

/** Emoji that close a title or a description: plain, ZWJ sequences, skin tones and flags. */
export const emoji: readonly string[] = [
  '✨',
  '👗',
  '🧥',
  '👟',
  '🍂',
  '☀️',
  '❄️',
  '🖤',
  '🌸',
  '🧣',
  '👒',
  '🤍',
  '🌊',
  '☕️',
  '❤️‍🔥',
  '👩‍🎤',
  '🧑🏽‍🎨',
  '👩🏿‍💻',
  '👩‍❤️‍👩',
  '🙌🏾',
  '💅🏻',
  '👋🏼',
  '🇫🇷',
  '🇯🇵',
  '🇧🇷',
  '🏳️‍🌈',
];

/** What stands before a mention, in every language. */
export const mentionLeads: readonly string[] = ['📸', '👜', '💄', '🪡', '♻️', '🤝'];

/** Words that make a username longer. */
export const handleWords: readonly string[] = ['styles', 'wears', 'closet', 'studio', 'daily'];

/** Soft colours of a photo's background, in both forms; the six-digit ones are more common. */
export const shortColors: readonly string[] = ['#fff', '#eee', '#fed', '#def', '#abc', '#123'];
export const longColors: readonly string[] = [
  '#ffffff',
  '#f5f0e8',
  '#faf3dd',
  '#e8d5c4',
  '#d8e2dc',
  '#c8d5b9',
  '#ffe5d9',
  '#f4acb7',
  '#9d8189',
  '#8fc0a9',
  '#68b0ab',
  '#4a7c59',
  '#bde0fe',
  '#a2d2ff',
  '#cdb4db',
  '#2b2d42',
  '#1d3557',
  '#000000',
];

/** A text that a reader, a writer or a font may stumble over. */
export interface OddText {
  readonly title: string;
  readonly description: string;
}

/** Texts that the contract allows and that break careless code; each occurs in every 1,000 rows. */
export const oddTexts: readonly OddText[] = [
  { title: '', description: '' },
  { title: 'Pasted from my notes', description: 'Wool coat\u2028Silk scarf\u2028Suede boots' },
  {
    title: 'The "little black dress"',
    description: 'She said: "Wear it \\ keep it." \'Nuff said.',
  },
  { title: 'C:\\Closet\\Summer\\look.png', description: 'Renamed from "IMG_0042" \\o/' },
  { title: 'Family picnic 👨‍👩‍👧‍👦', description: 'All four of us in linen 👩🏽‍🤝‍👨🏻 #family' },
  {
    title: '🇮🇹🇬🇷🇵🇹',
    description: 'Three countries, one carry-on 🧳\n\n🇮🇹 linen\n🇬🇷 sandals\n🇵🇹 straw bag',
  },
  { title: '👍🏻👍🏼👍🏽👍🏾👍🏿', description: 'A tee that suits everybody 🙌🏿 #unisex' },
  { title: '✨🖤✨', description: '🖤' },
  {
    title: 'Jeans & T-shirt <3',
    description: 'Still 100% cotton; <b>not</b> polyester &amp; proud of it',
  },
  { title: '  Spaces on both sides  ', description: '\tA tab first, and a newline last\n' },
  { title: 'Windows line endings', description: 'Top: linen\r\nBottom: denim\r\n#ootd' },
  { title: 'مع حذاء Chelsea الجديد', description: 'שמלה from the 1970s עם כיסים #vintage' },
  { title: 'Cafe\u0301 look', description: 'The same accent, two ways: e\u0301 and \u00e9' },
  { title: '𠮷野さんの帽子', description: '𝓼𝓽𝔂𝓵𝓮 in letters beyond the first plane' },
  { title: 'null', description: 'undefined' },
  { title: '0', description: '#1 #look #2026 @ # @@ ##' },
  {
    title: 'A very long walk in very good shoes, '.repeat(7).slice(0, 255),
    description: 'Mile after mile, and not one blister. '.repeat(60).trim(),
  },
];

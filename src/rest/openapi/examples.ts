// Values of fields in the examples of the OpenAPI document, by the type and field of GraphQL.

const image = 'https://media.example.com/outfits/0b8f7c52-6d0e-4a51-9a3c-5c7f0e1d2b34.jpeg';

export const examples: Readonly<Record<string, unknown>> = {
  'Outfit.backgroundColor': '#f5f0e8',
  'Outfit.complete': true,
  'Outfit.created': '2026-11-22T08:14:09.482913Z',
  'Outfit.creationDevice': 'ios',
  'Outfit.databaseId': 2417,
  'Outfit.description': 'Wool coat over a striped shirt #autumn',
  'Outfit.imageKey': image,
  'Outfit.imageOriginalUrl': image,
  'Outfit.likes': 38,
  'Outfit.modificationDevice': '',
  'Outfit.modified': '2026-11-22T08:14:09.482913Z',
  'Outfit.playVideo': false,
  'Outfit.private': false,
  'Outfit.quality': 4,
  'Outfit.title': 'Red coat for a grey day',
  'Outfit.video': null,
  'OutfitPage.count': 2417,
  'OutfitPage.page': 2,
  'OutfitPage.pageCount': 121,
  'User.avatarKey': 'avatars/5f1d3a77-2c49-4d0b-8e6a-9b0c1d2e3f45.png',
  'User.databaseId': 112,
  'User.firstName': 'Maya',
  'User.lastName': 'Olsen',
  'User.username': 'maya_olsen',
};

import './types/outfit-connection.ts';
import './types/outfit-mutations.ts';
import './types/outfit-page.ts';
import { builder } from './builder.ts';

export const schema = builder.toSchema();

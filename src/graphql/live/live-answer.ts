// One answer of a live query, encoded once for all of its readers; or the single one of another operation.
import { GraphQLError } from 'graphql';
import { HttpError, invalidToken, tooManyStreams } from '../../errors.ts';
import { entityTag } from '../../http/representation.ts';
import { type EncodedAnswer, encodeResult, eventType } from '../encoding.ts';

interface Format {
  encode(answer: LiveAnswer): Buffer;
}

export class LiveAnswer {
  /** The token has expired: clients subscribe again with a new one. */
  static readonly expired = LiveAnswer.refusal(
    new HttpError(401, invalidToken().code, 'The token has expired: ask again with a new one.'),
  );
  /** Another client needs its place. */
  static readonly evicted = LiveAnswer.refusal(tooManyStreams());
  readonly #events = new Map<Format, Buffer>();
  #tag: string | undefined;

  /**
   * @param isRefusal whether it is errors alone, of what is not executed
   * @param isLast whether no other one follows
   */
  private constructor(
    readonly body: Buffer,
    readonly isRefusal: boolean,
    readonly isLast: boolean,
  ) {}

  /** Of a live query, which nothing follows behind variables that are invalid, say. */
  static of({ body, isRefusal }: EncodedAnswer, isLast = isRefusal): LiveAnswer {
    return new LiveAnswer(body, isRefusal, isLast);
  }

  static refusal({ message, code }: HttpError): LiveAnswer {
    const errors = [new GraphQLError(message, { extensions: { code } })];
    return new LiveAnswer(encodeResult({ errors }, eventType).body, true, true);
  }

  /** Equal for equal answers. */
  get tag(): string {
    this.#tag ??= entityTag(this.body);
    return this.#tag;
  }

  eventIn(format: Format): Buffer {
    const event = this.#events.get(format) ?? format.encode(this);
    this.#events.set(format, event);
    return event;
  }
}

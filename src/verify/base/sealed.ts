// Makes the values that prove a check: only the holder of `seal` can make one, and only its own `unseal`
// opens it. Promises: no spread, clone, Object.create or constructor call makes a look-alike that opens at
// run time.

declare const sealedAs: unique symbol;

/** A value that was sealed under this name. */
export type Sealed<Content, Name extends string> = { readonly [sealedAs]: [Content, Name] };

/**
 * Gives `seal`, to be kept in the file that makes the check, and `unseal`, which throws a `TypeError` for
 * look-alikes.
 */
export function sealing<Content, Name extends string>() {
  class Box {
    readonly #content;
    declare readonly [sealedAs]: [Content, Name];

    constructor(content: Content) {
      this.#content = content;
    }

    static unseal(box: Sealed<Content, Name>) {
      if (!(#content in box)) throw new TypeError('this value was not sealed here');
      return box.#content;
    }
  }

  // Otherwise `new (box.constructor)(content)` would seal.
  Object.defineProperty(Box.prototype, 'constructor', { value: Object });

  const seal = (content: Content): Sealed<Content, Name> => new Box(content);
  return { seal, unseal: Box.unseal };
}

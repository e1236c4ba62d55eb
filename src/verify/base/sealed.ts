// Values that prove a check: only `seal` makes one, only its own `unseal` opens it. Promises: no spread,
// clone, Object.create or constructor call makes one at run time.

declare const sealedAs: unique symbol;

export type Sealed<Content, Name extends string> = { readonly [sealedAs]: [Content, Name] };

/** Keep `seal` private to the check. `unseal` throws a `TypeError` for other values. */
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

  hideConstructor(Box);
  const seal = (content: Content): Sealed<Content, Name> => new Box(content);
  return { seal, unseal: Box.unseal };
}

/** Otherwise `new (box.constructor)(content)` would make another. */
export function hideConstructor({ prototype }: { readonly prototype: object }) {
  Object.defineProperty(prototype, 'constructor', { value: Object });
}

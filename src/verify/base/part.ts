// A part: what code hands over besides plain values, made by the function of a path of its own. Promises: it
// shows nothing of what it was made of, cannot be forged, and serves one gate or service unless it is shared.
import type { Rule } from './option.ts';
import { hideConstructor } from './sealed.ts';

/** Made by one of the functions that the options name. `Name` is the option that it is for. */
export class Part<Name extends string, Content> {
  readonly #name: Name;
  readonly #content: Content;
  readonly #isShared: boolean;
  #isUsed = false;

  private constructor(name: Name, content: Content, isShared: boolean) {
    this.#name = name;
    this.#content = content;
    this.#isShared = isShared;
  }

  static make<Name extends string, Content>(name: Name, content: Content, isShared = false) {
    return new Part(name, content, isShared);
  }

  static is(value: unknown): value is Part<string, unknown> {
    return #content in Object(value);
  }

  static contentOf<Content>(part: Part<string, Content>) {
    return part.#content;
  }

  /** Whether it may be handed over as this option. */
  static rule<Name extends string, Content>(name: Name, maker: string): Rule<Part<Name, Content>> {
    return function checkPart(value) {
      if (!Part.is(value) || value.#name !== name) return `must be a part that ${maker} makes`;
      return value.#isUsed && !value.#isShared ? `serves another already; make one more` : undefined;
    };
  }

  /** From now on, a part that is not shared serves nothing else. Takes anything. */
  static use(values: object) {
    for (const value of Object.values(values)) {
      if (Part.is(value)) value.#isUsed = true;
    }
  }
}

hideConstructor(Part);

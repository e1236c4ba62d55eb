// A part: what code hands over besides plain values, made by the function of a path of its own. Promises: it
// shows nothing of what it was made of, cannot be forged, and serves one gate or service unless it is shared.
import type { Rule } from './option.ts';
import { hideConstructor } from './sealed.ts';

/** The problem of a part that may serve no other. */
export const TAKEN = 'serves another already; make one more';

/** Made by one of the functions that the options name. */
export class Part<Option extends string, Content> {
  readonly #option;
  readonly #content;
  readonly #isShared;
  #isUsed = false;

  private constructor(option: Option, content: Content, isShared: boolean) {
    this.#option = option;
    this.#content = content;
    this.#isShared = isShared;
  }

  static make<Option extends string, Content>(option: Option, content: Content, isShared = false) {
    return new Part(option, content, isShared);
  }

  /** That it is for. Declarations omit private members' types; this one tells parts apart. */
  get option() {
    return this.#option;
  }

  static is(value: unknown): value is Part<string, unknown> {
    return #content in Object(value);
  }

  static contentOf<Content, Absent extends undefined = never>(part: Part<string, Content> | Absent) {
    return part && part.#content;
  }

  /** Whether it is a part that serves a gate or service already, and may serve no other. */
  static isTaken(value: unknown) {
    return Part.is(value) && value.#isUsed;
  }

  /** Whether it may be handed over as this option. */
  static rule(option: string, maker: string): Rule {
    return function checkPart(value) {
      if (!Part.is(value) || value.#option !== option) {
        return `must be a part that ${maker} makes, of the same copy of the package`;
      }
      return value.#isUsed ? TAKEN : undefined;
    };
  }

  /** From now on, a part that is not shared serves nothing else. Takes anything. */
  static use(...owners: readonly object[]) {
    for (const value of owners.flatMap(Object.values)) {
      if (Part.is(value)) value.#isUsed = !value.#isShared;
    }
  }
}

hideConstructor(Part);

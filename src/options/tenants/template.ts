// A template of issuers (iss): one for each tenant of a provider. Promises: a text names a tenant only if it
// is, character for character, the template with that tenant in its place.
import { textMatching, type Rule } from '../../verify/base/option.ts';
import { ISSUER_RULES } from '../../verify/options.ts';
import { httpsUrl } from '../../verify/urls.ts';

/** A tenant. Neither it nor what it fills can have a `/`, a `{` or an escape. */
const TENANT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** In a list, alone: every tenant of the provider. */
export const EVERY = '*';

export const isTenant = (value: unknown): value is string => typeof value === 'string' && TENANT.test(value);

const SLOT = '{tenant}';

export const isTemplate = (url: string | undefined): url is string => url?.includes(SLOT) ?? false;

/** Up to the slot, which is a whole segment of the path. */
const BEFORE_SLOT = /^(\w+:\/\/[^/?]+\/(?:[^?]*\/)?)\{tenant\}(?![^/?])/;

const bracesOfSlot = textMatching(
  /^[^{}]*$/,
  'may have braces only as {tenant}, once, as a whole segment of the path of an issuer with tenants',
);

/** The rule of a URL in which one slot may stand. */
const withSlot = (rule: Rule): Rule =>
  function checkTemplate(value) {
    if (typeof value !== 'string') return rule(value);

    const filled = value.replace(BEFORE_SLOT, '$1tenant');
    return bracesOfSlot(filled) ?? rule(filled);
  };

/** Of the option `issuer` beside `tenants`. */
export const NOT_BOTH = 'is already set by tenants({ issuer }); remove it here';

export const TEMPLATE_RULES = {
  issuerOrTemplate: withSlot(ISSUER_RULES.issuer),
  addressOrTemplate: withSlot(httpsUrl),
};

export class Template {
  readonly text;
  /** `undefined` for every tenant of the provider. */
  readonly listed: ReadonlySet<string> | undefined;
  readonly #before;
  readonly #after;

  /** The rules of the options allow one slot, a whole segment of the path. */
  constructor(text: string, list: readonly string[]) {
    const place = text.indexOf(SLOT);
    this.text = text;
    this.listed = list.includes(EVERY) ? undefined : new Set(list);
    this.#before = text.slice(0, place);
    this.#after = text.slice(place + SLOT.length);
  }

  /** The issuer of a tenant, or an address of it. */
  fill(tenant: string): string {
    return this.#before + tenant + this.#after;
  }

  /** The tenant whose issuer this is. */
  tenantIn(iss: unknown): string | undefined {
    if (typeof iss !== 'string') return undefined;

    const word = iss.slice(this.#before.length, iss.length - this.#after.length);
    const isKnown = this.listed?.has(word) ?? isTenant(word);
    return isKnown && this.fill(word) === iss ? word : undefined;
  }

  /**
   * Whether one `iss` fits both. Choice: beside `*`, a fixed issuer wins, so that one tenant may have
   * stricter options.
   */
  overlaps({ issuer, template }: FixedOrTemplate): boolean {
    if (template === undefined) return this.listed !== undefined && this.tenantIn(issuer) !== undefined;

    // A template with its slot elsewhere has a word of its own here.
    const place = this.text.split('/').indexOf(SLOT);
    const filled = this.fill(issuer.split('/')[place] ?? '');
    return [this, template].every((one) => one.tenantIn(filled) !== undefined);
  }
}

/** What an issuer accepts as `iss`: one text, or those of a template. */
interface FixedOrTemplate {
  readonly name: string;
  readonly issuer: string;
  readonly template: Template | undefined;
}

/** The name of each that could accept a token of an earlier one. Equal texts are refused elsewhere. */
export function overlapping(all: readonly FixedOrTemplate[]): readonly string[] {
  return all.filter(isTaken).map(({ name }) => name);
}

function isTaken(one: FixedOrTemplate, index: number, all: readonly FixedOrTemplate[]) {
  const earlier = all.slice(0, index);
  return earlier.some((other) => {
    return other.template?.overlaps(one) ?? one.template?.overlaps(other);
  });
}

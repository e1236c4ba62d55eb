/* What somebody could pass off as a sealed value: copies, clones, objects that inherit from one, and the
   results of constructors. */

type Constructor = new (...values: unknown[]) => object;

const constructorOf = (proof: object) => proof.constructor as Constructor;

/** Each makes a look-alike of a genuine value; `forged` is what it would hold. */
export const lookAlikes = (forged: object): Readonly<Record<string, (proof: object) => unknown>> => ({
  'a plain object': () => forged,
  nothing: () => undefined,
  null: () => null,
  'a spread copy': (proof) => ({ ...proof }),
  'a structured clone': (proof) => structuredClone(proof),
  'a JSON copy': (proof) => JSON.parse(JSON.stringify(proof)),
  'an object that inherits from it': (proof) => Object.create(proof),
  'an object of the same prototype': (proof) => Object.create(Object.getPrototypeOf(proof)),
  'an object with its properties': (proof) =>
    Object.create(Object.getPrototypeOf(proof), Object.getOwnPropertyDescriptors(proof)),
  'an assigned copy': (proof) => Object.assign(Object.create(Object.getPrototypeOf(proof)), proof, forged),
  'a proxy': (proof) => new Proxy(proof, {}),
  'what its constructor makes': (proof) => new (constructorOf(proof))(forged, undefined, undefined),
  'what a subclass of its constructor makes': (proof) =>
    new (class extends constructorOf(proof) {})(forged, undefined, undefined),
  'what its constructor is made to make': (proof) =>
    Reflect.construct(constructorOf(proof), [forged], Object),
});

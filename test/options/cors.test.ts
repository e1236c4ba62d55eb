/* Which origins a pattern grants: those with one label of a host name in place of its *, and no others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cors } from '../../src/cors.ts';
import { Part } from '../../src/verify/base/option.ts';

function grants(listed: string, origin: string) {
  const part = cors({ origins: [listed] });
  const made = Part.contentOf(part)({ dpopMode: 'ALLOWED', methods: [] });
  return made.forReading(origin).length > 0;
}

const LISTED = 'https://*.preview.example';

test('takes each character that a label may have, and no other [§9, RFC 1035 §2.3.1]', () => {
  const characters = Array.from({ length: 512 }, (_, code) => String.fromCharCode(code));
  const taken = characters.filter((one) => grants(LISTED, `https://a${one}b.preview.example`));
  assert.equal(taken.join(''), '-0123456789_abcdefghijklmnopqrstuvwxyz');
});

test('takes a label of 63 characters, and none of 64 [§9, RFC 1035 §2.3.1]', () => {
  const granted = [1, 63, 64].map((length) =>
    grants(LISTED, `https://${'a'.repeat(length)}.preview.example`),
  );
  assert.deepEqual(granted, [true, true, false]);
});

test('takes a dot alone as the end of the label [§9]', () => {
  for (const end of [':', '-', '/', '']) {
    assert.equal(grants(LISTED, `https://a${end}preview.example`), false, end);
  }
});

test('takes a pattern wherever it stands in the list, and other origins beside it [§9]', () => {
  const plain = 'https://app.example';
  for (const origins of [
    [plain, LISTED],
    [LISTED, plain],
  ]) {
    const made = Part.contentOf(cors({ origins }))({ dpopMode: 'ALLOWED', methods: [] });
    for (const origin of [plain, 'https://a.preview.example']) {
      assert.equal(made.forReading(origin)[1], origin);
    }
    assert.deepEqual(made.forReading(LISTED), []);
  }
});

test('allows the methods of the routes unless an option says which, and holds for ten minutes [§9]', () => {
  const rawHeaders = ['Origin', 'https://a.preview.example', 'Access-Control-Request-Method', 'PUT'];
  for (const [methods, allowed] of [
    [undefined, 'GET, PATCH'],
    [['PUT'], 'PUT'],
  ] as const) {
    const access = Part.contentOf(cors({ origins: [LISTED], methods }))({
      dpopMode: 'DISABLED',
      methods: ['GET', 'PATCH'],
    });
    const { crossOrigin } = access.preflight({ method: 'OPTIONS', rawHeaders } as never) ?? {};
    assert.deepEqual(crossOrigin, [
      ...['Access-Control-Allow-Origin', 'https://a.preview.example'],
      ...['Access-Control-Allow-Credentials', 'true'],
      ...['Access-Control-Allow-Methods', allowed],
      ...['Access-Control-Allow-Headers', 'Authorization, Content-Type'],
      ...['Access-Control-Max-Age', '600'],
    ]);
  }
});

for (const name of ['origins', 'methods', 'headers', 'exposedHeaders']) {
  test(`refuses an empty list of ${name} in code [§11]`, () => {
    assert.throws(() => cors({ origins: [LISTED], [name]: [] }), {
      name: 'TypeError',
      message: `cors: ${name}: must be a list of 1 or more texts`,
    });
  });
}

test('takes each character that a scheme may have, as that of an app [§9, RFC 6454 §6.2]', () => {
  assert.equal(grants('web+app.v-2://*.preview.example', 'web+app.v-2://a.preview.example'), true);
});

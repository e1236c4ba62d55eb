/* The tables of settings themselves: the names of each, how it is read, and the rule that its part has. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { PROFILE_SETTINGS } from '../../src/profiles/settings.ts';
import { SERVICE_RULES } from '../../src/service/options.ts';
import { ISSUER_SETTINGS, type Setting } from '../../src/settings/table.ts';
import type { Rule } from '../../src/verify/base/option.ts';
import { SETTINGS } from './every-setting.ts';

const TABLE: Readonly<Record<string, Setting<unknown>>> = { ...PROFILE_SETTINGS, ...ISSUER_SETTINGS };

const RULES: Readonly<Record<string, Rule>> = { ...SERVICE_RULES };

/** What the reader or the rule says of a text. */
async function problemOf(name: string, text: string): Promise<string | undefined> {
  const { read, rule, importRule } = TABLE[name]!;
  try {
    const value = read(text);
    return (rule ?? (await importRule?.(text)) ?? RULES[name])?.(value);
  } catch (error) {
    return (error as Error).message;
  }
}

for (const { name, env = '', yaml = '', good, bad } of SETTINGS) {
  if (!(name in TABLE)) continue;

  test(`${env || yaml} has its names, reads valid values and refuses an invalid one`, async () => {
    const setting = TABLE[name]!;
    assert.deepEqual([setting.env, setting.yaml], [env, yaml]);
    for (const [text, value] of good.flatMap((one) => (one === undefined ? [] : [one]))) {
      assert.deepEqual(setting.read(text), value);
      assert.equal(await problemOf(name, text), undefined);
    }
    if (bad !== undefined) assert.match(String(await problemOf(name, bad[0])), bad[1]);
  });
}

test('reads each setting that is a number from decimal digits alone [C8]', () => {
  const numbers = SETTINGS.filter(({ name, good }) => name in TABLE && typeof good[0][1] === 'number');
  assert.ok(numbers.length > 10);
  for (const { name } of numbers) {
    for (const text of ['1e1', '0x1', '1.0', '+1', '-1', ' 1', '1 ']) {
      assert.ok(Number.isNaN(TABLE[name]!.read(text)), `${name}: ${text}`);
    }
  }
});

test('reads spring.application.name from YAML alone', () => {
  const { env, yaml } = PROFILE_SETTINGS.springApplicationName;
  assert.deepEqual([env, yaml], ['', 'spring.application.name']);
});

test('has the issuer of its domain by default, and none while the domain has a problem', () => {
  const { byDefault } = ISSUER_SETTINGS.issuer;
  assert.deepEqual([byDefault!({ domain: 'idp.test' }), byDefault!({})], ['https://idp.test/', undefined]);
});

test('asks the part of tenants only about a URL with a brace', async () => {
  for (const { importRule } of [ISSUER_SETTINGS.issuer, ISSUER_SETTINGS.jwksUri]) {
    assert.equal(await importRule!('https://idp.test/'), undefined);
    for (const url of ['https://idp.test/{tenant}/', 'https://idp.test/}', 'https://idp.test/{']) {
      assert.ok(await importRule!(url));
    }
  }
});

/* Bodies and queries by the schemas that teams have. */
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runTool } from '../../support/private-package.ts';

test('rows take the schemas of zod, valibot and ArkType, by type and over the wire', (context) => {
  runTool(context, fileURLToPath(new URL('.', import.meta.url)));
});

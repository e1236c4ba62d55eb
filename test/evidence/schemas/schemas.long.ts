/* Bodies and queries by the schemas that teams have. */
import { fileURLToPath } from 'node:url';
import { testTool } from '../../support/private-package.ts';

testTool(
  'rows take the schemas of zod, valibot and ArkType, by type and over the wire',
  fileURLToPath(new URL('.', import.meta.url)),
);

/* From a bare 401 to a 200 by the clients that people have. */
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runTool } from '../../support/private-package.ts';

test('the MCP clients, oauth4webapi and a page in a browser find the provider on their own, and are answered', (context) => {
  runTool(context, fileURLToPath(new URL('.', import.meta.url)));
});

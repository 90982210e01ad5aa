/** Prints how well the cache simulator predicts what providers billed: `node .ci/ts.mjs test/simulate/main.ts FILE…` */
import * as Format from "effect-compaction/format/Format"
import * as Result from "effect/Result"
import { readFileSync } from "node:fs"
import { basename } from "node:path"
import * as Billed from "./billed.ts"

console.log(
  "| session | requests | correlation | median error | mean error | predicted / billed | read less | read more |"
)
console.log("|---|---|---|---|---|---|---|---|")
for (const path of process.argv.slice(2)) {
  const text = readFileSync(path, "utf8")
  const session = Result.getOrThrow(Format.fromString(text, { file: path }))
  const found = Billed.agreement(Billed.predict(session, text))
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`
  console.log(
    `| ${basename(path, ".jsonl")} | ${found.requests} | ${found.correlation.toFixed(3)} | ${
      percent(found.medianError)
    } `
      + `| ${percent(found.meanError)} | ${found.ofBilled.toFixed(3)} | ${found.less} | ${found.more} |`
  )
}

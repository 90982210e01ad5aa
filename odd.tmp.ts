import * as Effect from "effect/Effect"
import * as Check from "./test/properties/Check.ts"
import * as Odd from "./test/properties/Odd.ts"
import * as Script from "./test/properties/Script.ts"
const from = Number(process.argv[2]), count = Number(process.argv[3])
await Effect.runPromise(Effect.gen(function*() {
  let failed = 0
  for (let seed = from; seed < from + count; seed++) {
    const violations = yield* Check.script(Odd.script(Script.make(seed)))
    if (violations.length === 0) continue
    if (failed++ < 12) console.log(seed, violations.map((v) => `${v.property}: ${v.detail.slice(0, 300)}`).join("\n   "))
  }
  console.log(count - failed, "passed", failed, "failed")
}))

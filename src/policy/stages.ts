import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Checkpoint from "../Checkpoint.ts"
import * as Gate from "../Gate.ts"
import * as Guard from "../Guard.ts"
import * as Kind from "../Kind.ts"
import type * as Ladder from "../Ladder.ts"
import * as Settings from "../Settings.ts"
import * as Stage from "../Stage.ts"
import * as Pass from "./pass.ts"

const none = Schema.Struct({})

/** The gates, stages and guards of this library, by the names that a pass is written in. */
export const builtIn = [
  Kind.gate("overhead", { options: none, build: () => Gate.overhead }),
  Kind.gate("signedReasoning", { options: none, build: () => Gate.signedReasoning }),
  Kind.stage("media", { options: none, build: () => Gate.media }),
  Kind.gate("pressure", { options: none, build: () => Gate.pressure }),
  Kind.gate("counted", { options: none, build: () => Gate.counted }),
  Kind.gate("provenance", {
    options: none,
    build: () =>
      Stage.closeOn("ProvenanceRefused")(Stage.when(Gate.provenance, (pass) => Settings.isGated(pass.settings)))
  }),
  Kind.stage("absorb", { options: none, build: () => Checkpoint.absorbSmaller }),
  Kind.stage("summarise", { options: none, build: () => Checkpoint.write }),
  // The ladder of the policy: it is known only where the policy is.
  Kind.stage("ladder", { options: none, build: () => (pass) => Effect.succeed(pass) }),
  Kind.guard("clearAtLeast", { options: none, build: () => Guard.clearAtLeast })
] as const

type Spec = { readonly _tag: string }

/** The stages of a pass that are needed for it to be asked whether there is anything to do. */
const deciding = new Set(["overhead", "signedReasoning", "media", "counted", "provenance"])

/** What is wrong with the order of a pass: a stage decides, and nothing before it says whether it should. */
export const ungated = (specs: ReadonlyArray<Spec>, kinds: ReadonlyMap<string, Kind.Any>): number | undefined => {
  for (const [at, { _tag }] of specs.entries()) {
    if (deciding.has(_tag)) continue
    const role = kinds.get(_tag)?.role
    if (role === "gate") return undefined
    if (role === "stage") return at
  }
  return undefined
}

/** The pass that is written: a guard judges the stages before it, back to the gate or the guarded stages before them. */
export const passOf = (
  specs: ReadonlyArray<Spec>,
  kinds: ReadonlyMap<string, Kind.Any>,
  ladder: Ladder.Ladder<unknown, unknown>
): Pass.Pass<unknown, unknown> => {
  const stages: Array<Stage.Any> = []
  let judged: Array<Stage.Any> = []
  let isGuarded = false
  const end = () => {
    stages.push(...judged)
    judged = []
    isGuarded = false
  }
  for (const spec of specs) {
    const kind = kinds.get(spec._tag)
    if (kind === undefined) continue
    // What a kind builds is of its role.
    const built = kind.build(spec) as Stage.Any & Stage.Check<unknown, unknown>
    if (kind.role === "guard") {
      judged = [Stage.guard(Stage.pipeline(...judged), built)]
      isGuarded = true
      continue
    }
    if (kind.role === "gate" || isGuarded) end()
    const stage = spec._tag === "ladder" ? Stage.when(ladder, Checkpoint.needsLadder) : built
    if (kind.role === "gate") stages.push(stage)
    else judged.push(stage)
  }
  end()
  if (specs.some(({ _tag }) => _tag === "counted")) stages.push(Guard.recount(ladder))
  return Object.assign(Pass.passFrom(...stages), { ladder })
}

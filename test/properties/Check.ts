import * as Effect from "effect/Effect"
import * as Properties from "./Properties.ts"
import * as Script from "./Script.ts"
import * as Trace from "./Trace.ts"

/** A property that does not hold, and for which script. */
export interface Violation {
  readonly property: string
  readonly detail: string
  readonly script: Script.Script
}

/** Checks some properties over one script; a defect of the library is a violation too. */
export const script = (
  self: Script.Script,
  properties: ReadonlyArray<Properties.Property> = Properties.all
): Effect.Effect<ReadonlyArray<Violation>> =>
  Effect.gen(function*() {
    const violations: Array<Violation> = []
    const trace = yield* Trace.run(self, { repeat: true })
    for (const property of properties) {
      const detail = yield* property.check(trace)
      if (detail !== undefined) violations.push({ property: property.name, detail, script: self })
    }
    return violations
  }).pipe(
    Effect.catchDefect((defect) =>
      Effect.succeed([{
        property: "defect",
        detail: defect instanceof Error ? defect.stack ?? defect.message : String(defect),
        script: self
      }])
    )
  )

/** Scripts that are a little smaller: parts of the operations left out, then messages, parts and settings. */
function* smaller(self: Script.Script): Generator<Script.Script> {
  const { operations } = self
  for (let size = Math.ceil(operations.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < operations.length; at += size) {
      yield { ...self, operations: [...operations.slice(0, at), ...operations.slice(at + size)] }
    }
  }
  for (const [at, operation] of operations.entries()) {
    if (operation._tag !== "append") continue
    const { messages } = operation
    for (let each = 0; each < messages.length; each++) {
      const message = messages[each]!
      if (messages.length > 1) yield withMessages(self, at, messages.filter((_, index) => index !== each))
      if (message.role === "system") continue
      for (let part = 0; part < message.content.length; part++) {
        // A selection of its own parts is of the kind its role allows; the union of roles loses that.
        const content = (message.content as ReadonlyArray<never>).filter((_, index) => index !== part)
        yield withMessages(self, at, messages.with(each, { ...message, content }))
      }
    }
  }
  for (const key of Object.keys(self.settings)) {
    yield { ...self, settings: Object.fromEntries(Object.entries(self.settings).filter(([name]) => name !== key)) }
  }
  if (self.ladder !== "progressive") yield { ...self, ladder: "progressive" }
  if (self.estimator !== "chars") yield { ...self, estimator: "chars" }
}

const withMessages = (
  self: Script.Script,
  at: number,
  messages: Extract<Script.Operation, { readonly _tag: "append" }>["messages"]
): Script.Script => ({ ...self, operations: self.operations.with(at, { _tag: "append", messages }) })

/** The smallest script found in `tries` tries that still violates the same property. */
const shrink = Effect.fnUntraced(function*(violation: Violation, tries = 600): Effect.fn.Return<Violation> {
  const properties = Properties.all.filter((property) => property.name === violation.property)
  let best = violation
  let left = tries
  let isSmaller = true
  while (isSmaller && left > 0) {
    isSmaller = false
    for (const candidate of smaller(best.script)) {
      if (left-- <= 0) break
      const found = (yield* script(candidate, properties)).find((each) => each.property === violation.property)
      if (found === undefined) continue
      best = found
      isSmaller = true
      break
    }
  }
  return best
})

const shorten = (key: string, value: unknown): unknown => {
  if (key.startsWith("~") || (key === "options" && same(value, {}))) return undefined
  return typeof value === "string" && value.length > 90
    ? `${value.slice(0, 30)}… (${value.length} characters)`
    : value
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** A script in lines that a person can read. */
const show = ({ operations, ...self }: Script.Script): string =>
  [
    JSON.stringify(self),
    ...operations.flatMap((operation) =>
      operation._tag === "append"
        ? operation.messages.map((message) => `append ${JSON.stringify(message, shorten)}`)
        : [JSON.stringify(operation, shorten)]
    )
  ].map((line) => `  ${line}`).join("\n")

/** Checks the scripts of some seeds, and tells the first violations, made small. */
export const seeds = Effect.fnUntraced(function*(
  options: {
    readonly from: number
    readonly count: number
    readonly show?: number
    readonly properties?: ReadonlyArray<Properties.Property>
  }
) {
  const failures: Array<string> = []
  let failed = 0
  for (let seed = options.from; seed < options.from + options.count; seed++) {
    const violations = yield* script(Script.make(seed), options.properties)
    if (violations.length === 0) continue
    failed++
    if (failures.length >= (options.show ?? 3)) continue
    const found = yield* shrink(violations[0]!)
    failures.push(
      `seed ${seed}: ${violations.map((each) => each.property).join(", ")}; ${found.property}: ${found.detail}\n`
        + show(found.script)
    )
  }
  return { passed: options.count - failed, failed, failures }
})

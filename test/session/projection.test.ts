import { assert, describe, it } from "@effect/vitest"
import * as Projection from "effect-compaction/Projection"
import * as Surface from "effect-compaction/Surface"
import * as Transaction from "effect-compaction/Transaction"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Random from "../properties/Random.ts"

/** Any log whose replacements are announced. */
const logOf = (seed: number): ReadonlyArray<Projection.Event> => {
  const random = Random.make(seed)
  const events: Array<Projection.Event> = []
  let state = Transaction.empty
  const take = (event: Transaction.Event) => {
    const next = Transaction.apply(state, event)
    if (typeof next === "string") throw new Error(next)
    state = next
    events.push(event)
  }
  /** What is no event of the log counts as a note of it, so that seqs stay those of the whole list. */
  const beside = (event: Projection.Event) => {
    take({ op: "note" })
    events[events.length - 1] = event
  }
  const turns = 1 + random.below(60)
  for (let turn = 0; turn < turns; turn++) {
    const { nodes } = state.surface
    const kind = random.below(12)
    if (kind < 6 || nodes.length === 0) {
      const role = random.pick(["user", "assistant"] as const)
      take({ op: "append", node: { role, calls: [], answers: [], price: random.below(200) } })
    } else if (kind < 9) {
      const first = random.below(nodes.length)
      const range = nodes.slice(first, first + 1 + random.below(nodes.length - first))
      const start = range[0]!.seq
      const end = range.at(-1)!.seq
      const price = range.reduce((sum, node) => sum + node.price, 0)
      const checkpoints = range.reduce((sum, node) => sum + (node.checkpoint === true ? node.price : 0), 0)
      take({ op: "claim", start, end, price, checkpoints })
      const node = {
        role: "user",
        calls: [],
        answers: [],
        price: random.below(100),
        checkpoint: random.chance(0.6)
      } as const
      take({ op: "replace", node, start, end, cites: range.map(({ seq }) => seq) })
    } else if (kind === 9) beside({ op: "header", system: random.below(500), tools: random.below(500) })
    else if (kind === 10) beside({ op: "window", tokens: random.chance(0.2) ? null : 1_000 * random.below(200) })
    else {
      beside({
        op: "billed",
        input: random.below(900),
        cacheRead: random.below(900),
        cacheWrite: random.below(90),
        output: random.below(90)
      })
    }
  }
  return events
}

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

/** The same figures from the whole list, each time anew. */
const recomputed = (events: ReadonlyArray<Projection.Event>) => {
  const surfaceAt = (length: number): Surface.Surface =>
    events.slice(0, length).reduce<Surface.Surface>((surface, event) => {
      const change: Surface.Change = event.op === "append" || event.op === "replace" || event.op === "claim"
        ? event
        : { op: "note" }
      const next = Surface.apply(surface, change)
      if (typeof next === "string") throw new Error(next)
      return next
    }, Surface.empty)
  const headerAt = (length: number) => {
    const header = events.slice(0, length).findLast((event) => event.op === "header")
    return header?.op === "header" ? header : { system: 0, tools: 0 }
  }
  const costAt = (length: number): number =>
    Surface.priceOf(surfaceAt(length)) + headerAt(length).system + headerAt(length).tools
  const { nodes } = surfaceAt(events.length)
  const bills = events.flatMap((event) => event.op === "billed" ? [event] : [])
  const last = events.findLastIndex((event) => event.op === "billed")
  const window = events.findLast((event) => event.op === "window")
  const bill = bills.at(-1)
  const { system, tools } = headerAt(events.length)
  return {
    usage: {
      input: sum(bills.map((each) => each.input)),
      cacheRead: sum(bills.map((each) => each.cacheRead)),
      cacheWrite: sum(bills.map((each) => each.cacheWrite)),
      output: sum(bills.map((each) => each.output)),
      answers: bills.length
    },
    pressure: {
      billed: bill === undefined ? null : bill.input + bill.cacheRead + bill.cacheWrite,
      moved: bill === undefined ? costAt(events.length) : costAt(events.length) - costAt(last + 1),
      estimated: costAt(events.length),
      window: window?.op === "window" ? window.tokens : null
    },
    breakdown: {
      system,
      tools,
      messages: sum(nodes.filter((node) => node.checkpoint !== true).map((node) => node.price)),
      checkpoints: sum(nodes.filter((node) => node.checkpoint === true).map((node) => node.price))
    }
  }
}

/** Keeps a state as JSON and takes it up again. */
const kept = <State>({ schema }: Projection.Projection<State>, state: State): Effect.Effect<State> =>
  Effect.gen(function*() {
    const text = JSON.stringify(yield* Schema.encodeEffect(schema)(state))
    return yield* Schema.decodeUnknownEffect(schema)(JSON.parse(text))
  }).pipe(Effect.orDie)

describe("projections", () => {
  it.effect("are at every event what the whole log says, kept and taken up again each time, and do not grow", () =>
    Effect.gen(function*() {
      let longest = 0
      for (let seed = 1; seed <= 60; seed++) {
        const events = logOf(seed)
        let usage = Projection.usage.initial
        let pressure = Projection.pressure.initial
        let breakdown = Projection.breakdown.initial
        for (const [at, event] of events.entries()) {
          usage = yield* kept(Projection.usage, Projection.usage.apply(usage, event))
          pressure = yield* kept(Projection.pressure, Projection.pressure.apply(pressure, event))
          breakdown = yield* kept(Projection.breakdown, Projection.breakdown.apply(breakdown, event))
          const expected = recomputed(events.slice(0, at + 1))
          const where = `seed ${seed}, event ${at}`
          assert.deepStrictEqual(usage, expected.usage, where)
          assert.deepInclude(pressure, expected.pressure, where)
          assert.deepInclude(breakdown, expected.breakdown, where)
          longest = Math.max(longest, JSON.stringify([usage, pressure, breakdown]).length)
        }
        assert.deepStrictEqual(Projection.fold(Projection.pressure, events), pressure)
      }
      assert.isBelow(longest, 600)
    }))

  it("give back the same object for what is none of their business", () => {
    for (const event of [{ op: "note" }, { op: "turn", turn: 1 }, { op: "opened" }] as const) {
      for (const projection of [Projection.usage, Projection.pressure, Projection.breakdown]) {
        const state: unknown = projection.initial
        assert.strictEqual((projection as Projection.Projection<unknown>).apply(state, event), state)
      }
    }
  })

  it("say how full the window is, by the bill and what came since", () => {
    const node = (price: number) => ({ role: "user", calls: [], answers: [], price }) as const
    const before = Projection.fold(Projection.pressure, [{ op: "append", node: node(100) }])
    assert.deepStrictEqual(Projection.occupied(before), { tokens: 100, kind: "estimated" })
    const after = Projection.fold(Projection.pressure, [
      { op: "billed", input: 50, cacheRead: 100, cacheWrite: 5, output: 9 },
      { op: "append", node: node(40) }
    ], before)
    assert.deepStrictEqual(Projection.occupied(after), { tokens: 195, kind: "usage" })
  })

  it.effect("a transaction announces how much of what it replaces is checkpoints", () =>
    Effect.gen(function*() {
      let state = Transaction.empty
      const events: Array<Transaction.Event> = []
      const take = (event: Transaction.Event) => {
        const next = Transaction.apply(state, event)
        if (typeof next === "string") throw new Error(next)
        state = next
        return events.push(event) - 1
      }
      const log: Transaction.Log<null> = {
        state: Effect.sync(() => state),
        append: (mark) => Effect.sync(() => take(mark)),
        flush: Effect.void,
        exclusively: (self) => self
      }
      for (let round = 0; round < 3; round++) {
        for (const price of [50, 60, 70]) {
          take({ op: "append", node: { role: "user", calls: [], answers: [], price } })
        }
        yield* Transaction.run(log, {
          owner: "manual",
          summarise: () => Effect.succeed({ text: "so far", framed: "[so far]", price: 20 + round, evidence: null })
        })
        const { checkpoints, messages } = Projection.fold(Projection.breakdown, events)
        assert.deepStrictEqual([messages, checkpoints], [70, 20 + round])
      }
    }))
})

describe("legal cuts", () => {
  it("read the nodes that came, and all of them only after a replacement", () => {
    let reads = 0
    const counted = (seq: number): Surface.Node => ({
      seq,
      role: "user",
      get calls() {
        reads++
        return []
      },
      answers: [],
      price: 1
    })
    const nodes = Array.from({ length: 1_000 }, (_, seq) => counted(seq))
    const cuts = Surface.makeCuts()
    for (let length = 1; length <= nodes.length; length++) {
      reads = 0
      Surface.readCuts(cuts, nodes.slice(0, length), 0)
      const first = reads
      assert.isAbove(first, 0)
      Surface.readCuts(cuts, nodes.slice(0, length), 0)
      assert.strictEqual(reads, first, "nothing came, nothing is read")
      assert.isAtMost(first, 2, "one came, one is read")
    }
    reads = 0
    Surface.readCuts(cuts, nodes, 1)
    assert.isAtLeast(reads, nodes.length)
    assert.isAtMost(reads, 2 * nodes.length)
  })
})

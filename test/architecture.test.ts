import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize, relative } from "node:path"
import { fileURLToPath } from "node:url"

/**
 * A file imports from its own floor (without circles) and from lower ones. A private file lies in the room of its family
 * and has no row: it stands on the highest floor it imports from, and only its type imports may look up.
 */
const floors: ReadonlyArray<{ readonly name: string; readonly files: ReadonlyArray<string> }> = [
  { name: "data", files: ["Transcript", "Decision", "View", "Wire", "Marks"] },
  // A ladder asks the spill store where a text will lie, as it asks the estimator what a message costs.
  { name: "measure", files: ["Estimator", "Overflow", "TokenMeter", "Settings", "Budget", "SpillStore"] },
  {
    name: "decide",
    files: [
      "Stage",
      "Rung",
      "Kind",
      "Ladder",
      "Gate",
      "Guard",
      "ToolResult",
      "Checkpoint",
      "CompactionEvent",
      "Summarizer"
    ]
  },
  { name: "policy", files: ["Policy"] },
  {
    name: "session",
    files: [
      "ContextManager",
      "SessionLog",
      "SessionStore",
      "Session",
      "RuntimeContext",
      "Recall",
      "Conversations"
    ]
  },
  { name: "edges", files: ["CompactedModel", "ClusterConversations", "CompactionWorkflow", "format/*", "simulate/*"] },
  { name: "tests of others", files: ["testing"] },
  { name: "barrel", files: ["index"] },
  { name: "command line", files: ["cli/*"] }
]

/** The rooms of private files. */
const isPrivate = (file: string): boolean =>
  /^(text|wire|ladder|session|store|policy|app|format\/parts|simulate\/parts)\//.test(file)

/** The rooms, lowest first. What is typed by a room above looks up at it; values never do. */
const rooms: ReadonlyArray<string> = [
  "text",
  "wire",
  "ladder",
  "policy",
  "store",
  "session",
  "app",
  "format/parts",
  "format",
  "simulate/parts",
  "simulate",
  "cli/report",
  "cli"
]

/** Which packages may be imported, by the folder of the importing file; the rest of src may import `effect` alone. */
const packages: { readonly [folder: string]: ReadonlyArray<string> } = {
  // The entry is a process: its streams, signals and exit code are Node's own.
  cli: ["effect", "@effect/platform-node", "@effect/sql-pg", "node:fs", "node:os", "node:process"]
}

interface Import {
  readonly specifier: string
  readonly typeOnly: boolean
}

/** Every import and re-export of a source text; an import written in a comment begins with ` *` or `//` and is none. */
const importsOf = (source: string): ReadonlyArray<Import> => [
  ...Array.from(
    source.matchAll(/^(?:import|export)\s+(type\s+)?(?:[\w\s*{},$]+\sfrom\s+)?"([^"]+)"/gm),
    (match) => ({ typeOnly: match[1] !== undefined, specifier: match[2]! })
  ),
  ...Array.from(
    source.replaceAll(/^\s*(?:\*|\/\/|\/\*).*$/gm, "").matchAll(/\bimport\("([^"]+)"\)/g),
    (match) => ({ typeOnly: false, specifier: match[1]! })
  )
]

const rowOf = (file: string): number =>
  floors.findIndex(({ files }) =>
    files.some((row) => row === file || (row.endsWith("/*") && file.startsWith(row.slice(0, -1))))
  )

/** What is wrong with a tree of sources, given as file name without `.ts` to text. */
const violations = (sources: ReadonlyMap<string, string>): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  const graph = new Map<string, ReadonlyArray<{ readonly file: string; readonly typeOnly: boolean }>>()
  for (const [file, source] of sources) {
    const folder = file.includes("/") ? file.slice(0, file.indexOf("/")) : ""
    const allowed = packages[folder] ?? ["effect"]
    const edges: Array<{ readonly file: string; readonly typeOnly: boolean }> = []
    for (const { specifier, typeOnly } of importsOf(source)) {
      if (specifier.startsWith(".")) {
        const target = normalize(join(dirname(file), specifier))
        if (target === "../package.json") continue
        if (!target.endsWith(".ts") || !sources.has(target.slice(0, -3))) {
          wrong.push(`${file} imports ${specifier}, which is no file of src`)
        } else edges.push({ file: target.slice(0, -3), typeOnly })
      } else if (
        !allowed.some((name) => specifier === name && name.includes(":") || specifier.startsWith(`${name}/`))
      ) {
        wrong.push(`${file} imports ${specifier}; only modules of ${allowed.join(" and ")} may be imported here`)
      }
    }
    graph.set(file, edges)
    if (!isPrivate(file) && rowOf(file) === -1) {
      wrong.push(`${file} is on no floor: add it to the table of this test`)
    }
  }

  // The type imports of a private file look up freely; all other imports must end somewhere below.
  const binding = (file: string) => (graph.get(file) ?? []).filter(({ typeOnly }) => !(typeOnly && isPrivate(file)))

  const done = new Set<string>()
  const visit = (file: string, path: ReadonlyArray<string>): void => {
    const start = path.indexOf(file)
    if (start !== -1) {
      wrong.push(`circle: ${[...path.slice(start), file].join(" -> ")}`)
      return
    }
    if (done.has(file)) return
    for (const target of binding(file)) visit(target.file, [...path, file])
    done.add(file)
  }
  for (const file of graph.keys()) visit(file, [])

  const floorOf = (file: string, seen: ReadonlySet<string> = new Set()): number => {
    if (!isPrivate(file)) return rowOf(file)
    if (seen.has(file)) return 0
    return Math.max(0, ...binding(file).map((target) => floorOf(target.file, new Set([...seen, file]))))
  }
  for (const file of graph.keys()) {
    if (isPrivate(file) || rowOf(file) === -1) continue
    for (const target of binding(file)) {
      const [from, to] = [floorOf(file), floorOf(target.file)]
      if (to > from) {
        wrong.push(`${file} (${floors[from]!.name}) imports ${target.file} (${floors[to]!.name}), which is above it`)
      }
    }
  }
  return wrong
}

/** Lines of a file, and of a function; public modules that the index names. */
const mostLines = 450
const mostLinesOfFunction = 120
const mostModules = 30

/** Modules that an app imports by themselves, since what they stand on is heavy to load. */
const apart: ReadonlySet<string> = new Set(["ClusterConversations", "CompactionWorkflow"])

/** The definitions at the beginning of a line, each with how many lines it has. */
const functionsOf = (source: string): ReadonlyArray<readonly [name: string, lines: number]> => {
  const found: Array<readonly [string, number]> = []
  let start = -1
  let name = ""
  for (const [at, line] of source.split("\n").entries()) {
    const begun = /^(?:export )?(?:const|function|class) (\w+)[^{]*(?:=>|\(|function)/.exec(line)
    if (begun !== null) [start, name] = [at, begun[1]!]
    else if (/^(?:export )?(?:const|interface|type) /.test(line)) start = -1
    if (/^[})\]]/.test(line) && start >= 0) {
      found.push([name, at - start])
      start = -1
    }
  }
  return found
}

describe("architecture", () => {
  it("files and functions are as long as one reads at once, and the index names every public module", () => {
    const root = fileURLToPath(new URL("../src", import.meta.url))
    const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => /(?<!\.d)\.ts$/.test(name))
    for (const file of files) {
      const source = readFileSync(join(root, file), "utf8")
      assert.isAtMost(source.split("\n").length, mostLines + 1, file)
      for (const [each, lines] of functionsOf(source)) assert.isAtMost(lines, mostLinesOfFunction, `${file}: ${each}`)
    }
    const modules = files.filter((file) => /^[A-Z]\w+\.ts$/.test(file)).map((file) => file.slice(0, -3)).sort()
    const index = readFileSync(join(root, "index.ts"), "utf8")
    const named = Array.from(index.matchAll(/^export \* as (\w+) from "\.\/\1\.ts"$/gm), ([, name]) => name!)
    assert.deepStrictEqual(named.sort(), modules.filter((name) => !apart.has(name)))
    assert.isAtMost(named.length, mostModules)
  })

  it("rooms look down, and at most six look up at another one", () => {
    const root = fileURLToPath(new URL("../src", import.meta.url))
    const up = new Set<string>()
    for (const [at, room] of rooms.entries()) {
      for (const file of readdirSync(join(root, room)).filter((name) => name.endsWith(".ts"))) {
        for (const { specifier } of importsOf(readFileSync(join(root, room, file), "utf8"))) {
          const target = rooms.indexOf(dirname(normalize(join(room, specifier))))
          if (specifier.startsWith(".") && target > at) up.add(`${room} -> ${rooms[target]}`)
        }
      }
    }
    assert.isAtMost(up.size, 6, [...up].join())
  })

  it("every import of src goes down", () => {
    const root = fileURLToPath(new URL("../src", import.meta.url))
    const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => /(?<!\.d)\.ts$/.test(name))
    assert.isAbove(files.length, 0)
    const sources = new Map(
      files.map((name) =>
        [relative(".", name).replaceAll("\\", "/").slice(0, -3), readFileSync(join(root, name), "utf8")] as const
      )
    )
    assert.deepStrictEqual(violations(sources), [])
  })

  it("the help of the command line loads nothing that plays a session", () => {
    const root = fileURLToPath(new URL("../src", import.meta.url))
    const loaded = new Set<string>()
    const load = (file: string): void => {
      if (loaded.has(file)) return
      loaded.add(file)
      const source = readFileSync(join(root, `${file}.ts`), "utf8")
      // An import that is called for is not loaded with its file.
      for (
        const [, typeOnly, specifier = ""] of source.matchAll(
          /^(?:import|export)\s+(type\s+)?(?:[^"]*\sfrom\s+)?"([^"]+)"/gm
        )
      ) {
        if (typeOnly === undefined && /^\..*\.ts$/.test(specifier)) {
          load(normalize(join(dirname(file), specifier)).slice(0, -3))
        }
      }
    }
    load("cli/main")
    assert.isTrue(loaded.has("cli/ReplayCommand"))
    for (
      const file of ["Policy", "ContextManager", "Transcript", "format/Format", "cli/ReplayRun", "cli/report/Report"]
    ) {
      assert.isFalse(loaded.has(file), file)
    }
  })

  const cases: ReadonlyArray<readonly [string, { readonly [file: string]: string }, ReadonlyArray<string>]> = [
    ["down and sideways", {
      Budget: `import * as View from "./View.ts"\nimport * as Estimator from "./Estimator.ts"`,
      Estimator: `import * as Effect from "effect/Effect"`,
      View: ""
    }, []],
    ["up", { View: `import * as Budget from "./Budget.ts"`, Budget: "" }, [
      "View (data) imports Budget (measure), which is above it"
    ]],
    ["up, types only", { View: `import type {\n  A\n} from "./Budget.ts"`, Budget: "" }, [
      "View (data) imports Budget (measure), which is above it"
    ]],
    ["up, re-export", { View: `export * from "./format/Session.ts"`, "format/Session": "" }, [
      "View (data) imports format/Session (edges), which is above it"
    ]],
    ["up through a private file", {
      View: `import { a } from "./ladder/a.ts"`,
      "ladder/a": `import { b } from "./b.ts"`,
      "ladder/b": `import * as Ladder from "../Ladder.ts"`,
      Ladder: ""
    }, ["View (data) imports ladder/a (decide), which is above it"]],
    ["a private file looks up for a type", {
      View: `import { a } from "./ladder/a.ts"`,
      "ladder/a": `import type * as View from "../View.ts"`
    }, []],
    ["circle", {
      Stage: `import * as Rung from "./Rung.ts"`,
      Rung: `import type * as Guard from "./Guard.ts"`,
      Guard: `import * as Stage from "./Stage.ts"`
    }, ["circle: Stage -> Rung -> Guard -> Stage"]],
    ["no row", { Utils: "" }, ["Utils is on no floor: add it to the table of this test"]],
    ["no such file", { View: `import "./Vieww.ts"` }, ["View imports ./Vieww.ts, which is no file of src"]],
    ["a package of Node", { View: `import * as fs from "node:fs"` }, [
      "View imports node:fs; only modules of effect may be imported here"
    ]],
    ["the barrel of effect", { View: `import { Effect } from "effect"` }, [
      "View imports effect; only modules of effect may be imported here"
    ]],
    ["platform-node outside cli", {
      "cli/main": `import * as NodeRuntime from "@effect/platform-node/NodeRuntime"`,
      "format/Read": `import * as NodeRuntime from "@effect/platform-node/NodeRuntime"`
    }, ["format/Read imports @effect/platform-node/NodeRuntime; only modules of effect may be imported here"]],
    ["an example in a docstring", { View: `/**\n * import * as Budget from "./Budget.ts"\n */` }, []]
  ]
  for (const [name, tree, expected] of cases) {
    it(`sees: ${name}`, () => {
      assert.deepStrictEqual(violations(new Map(Object.entries(tree))), expected)
    })
  }
})

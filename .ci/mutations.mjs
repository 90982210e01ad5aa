// What may be changed in a source text so that a test should notice: one small change at a time, each a program that parses.
import { parseAst } from "vitest/node"

/**
 * @typedef {{ readonly type: string, readonly start: number, readonly end: number, readonly [key: string]: any }} Node
 * @typedef {{ readonly kind: string, readonly start: number, readonly end: number, readonly to: string }} Mutation
 */

// What to use instead is no export of a package that this project names.
// oxlint-disable-next-line typescript/no-deprecated
const parse = (/** @type {string} */ source) => parseAst(source, { lang: "ts" })

/** @type {{ readonly [operator: string]: string }} */
const binary = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "&": "|",
  "|": "&",
  "<<": ">>",
  ">>": "<<"
}

/** @type {{ readonly [operator: string]: string }} */
const logical = { "&&": "||", "||": "&&" }

/** @type {{ readonly [operator: string]: string }} */
const assignment = { "+=": "-=", "-=": "+=", "*=": "/=", "??=": "=", "||=": "=" }

/** @type {{ readonly [name: string]: string }} */
const calls = {
  "Math.min": "Math.max",
  "Math.max": "Math.min",
  "Math.floor": "Math.ceil",
  "Math.ceil": "Math.floor",
  ".some": ".every",
  ".every": ".some",
  ".indexOf": ".lastIndexOf",
  ".find": ".findLast",
  ".findIndex": ".findLastIndex",
  ".findLast": ".find",
  ".findLastIndex": ".findIndex",
  ".startsWith": ".endsWith",
  ".endsWith": ".startsWith",
  ".trimStart": ".trim",
  ".trimEnd": ".trim"
}

/** Types, and what only names or describes: a change there changes nothing that runs, or what no rule speaks of. */
const isSilent = (/** @type {Node} */ node) =>
  (node.type.startsWith("TS") && !/^TS(As|NonNull|Satisfies|Instantiation)/.test(node.type))
  || (/^(Import|Export(All|Named)Declaration$)/.test(node.type) && !node.declaration)

/** @type {(node: Node) => boolean} */
const isText = (node) =>
  node.type === "TemplateLiteral" || (node.type === "Literal" && typeof node.value === "string")
  || (node.type === "BinaryExpression" && node.operator === "+" && (isText(node.left) || isText(node.right)))

/** Whether a call only tells somebody something: nothing that the program does hangs on it. */
const isTelling = (/** @type {string} */ text) => /^(yield\* )?(Effect\.(log|annotate)|Telemetry\.|console\.)/.test(text)

/**
 * All mutations of a source text, in the order in which they stand in it.
 *
 * @param {string} source
 * @returns {ReadonlyArray<Mutation>}
 */
export const of = (source) => {
  /** @type {Array<Mutation>} */
  const found = []
  const text = (/** @type {Node} */ node) => source.slice(node.start, node.end)
  const put = (/** @type {string} */ kind, /** @type {number} */ start, /** @type {number} */ end, /** @type {string} */ to) => {
    if (source.slice(start, end) !== to) found.push({ kind, start, end, to })
  }
  /** The place of an operator, which stands between two nodes. */
  const operator = (/** @type {Node} */ node, /** @type {Node} */ left, /** @type {Node} */ right, /** @type {string} */ to) => {
    const at = source.indexOf(node.operator, left.end)
    if (at >= 0 && at < right.start) put(node.type === "LogicalExpression" ? "logical" : "operator", at, at + node.operator.length, to)
  }
  /** @param {Node} node */
  const own = (node) => {
    switch (node.type) {
      case "BinaryExpression": {
        const to = binary[node.operator]
        if (to !== undefined && !isText(node)) operator(node, node.left, node.right, to)
        return
      }
      case "LogicalExpression": {
        const to = logical[node.operator]
        if (to !== undefined) operator(node, node.left, node.right, to)
        if (node.operator === "??") put("logical", node.start, node.end, text(node.left))
        if (node.operator === "&&") put("condition", node.start, node.end, text(node.right))
        return
      }
      case "AssignmentExpression": {
        const to = assignment[node.operator]
        if (to !== undefined) operator(node, node.left, node.right, to)
        return
      }
      case "UpdateExpression":
        return put("operator", node.start, node.end, text(node).replace(node.operator, node.operator === "++" ? "--" : "++"))
      case "UnaryExpression":
        if (node.operator === "!") put("condition", node.start, node.end, text(node.argument))
        if (node.operator === "-" && text(node.argument) !== "0") put("constant", node.start, node.end, text(node.argument))
        return
      case "ConditionalExpression":
        put("branches", node.consequent.start, node.alternate.end, `${text(node.alternate)} : ${text(node.consequent)}`)
        return
      case "IfStatement":
        put("branches", node.test.start, node.test.end, `!(${text(node.test)})`)
        if (!node.alternate) put("statement", node.start, node.end, "")
        return
      case "WhileStatement":
      case "ForStatement":
        if (node.test) put("condition", node.test.start, node.test.end, "false")
        return
      case "Literal":
        if (typeof node.value === "boolean") put("constant", node.start, node.end, String(!node.value))
        if (typeof node.value === "number") put("constant", node.start, node.end, node.value === 0 ? "1" : `(${text(node)} + 1)`)
        if (node.value === "") put("constant", node.start, node.end, "\"mutated\"")
        return
      case "ExpressionStatement": {
        const { type } = node.expression
        if (/^(Call|Yield|Assignment|Update)Expression$/.test(type) && !isTelling(text(node))) put("statement", node.start, node.end, "")
        return
      }
      case "CallExpression": {
        const callee = text(node.callee)
        const member = /\.\w+$/.exec(callee)?.[0] ?? ""
        const to = calls[callee] ?? (calls[member] === undefined ? undefined : callee.slice(0, -member.length) + calls[member])
        if (to !== undefined) put("call", node.callee.start, node.callee.end, to)
      }
    }
  }
  /** @param {unknown} value */
  const visit = (value) => {
    if (Array.isArray(value)) return value.forEach(visit)
    if (typeof value !== "object" || value === null || !("type" in value)) return
    const node = /** @type {Node} */ (value)
    if (isSilent(node)) return
    own(node)
    for (const [key, child] of Object.entries(node)) {
      if (!/^(type|typeAnnotation|typeArguments|typeParameters|returnType|superTypeArguments|key)$/.test(key)) visit(child)
    }
  }
  visit(parse(source))
  return found
}

/**
 * Whether a mutation makes a program that parses.
 *
 * @param {string} source
 * @param {Mutation} mutation
 */
export const parses = (source, mutation) => {
  try {
    parse(apply(source, mutation))
    return true
  } catch {
    return false
  }
}

/**
 * @param {string} source
 * @param {Mutation} mutation
 */
export const apply = (source, { end, start, to }) => source.slice(0, start) + to + source.slice(end)

/**
 * The lines that a mutation changes, as a diff without context.
 *
 * @param {string} source
 * @param {Mutation} mutation
 */
export const diff = (source, mutation) => {
  const before = source.split("\n")
  const after = apply(source, mutation).split("\n")
  let first = 0
  while (first < before.length && before[first] === after[first]) first++
  let last = 0
  while (last < Math.min(before.length, after.length) - first && before.at(-1 - last) === after.at(-1 - last)) last++
  const lines = (/** @type {ReadonlyArray<string>} */ all, /** @type {string} */ mark) =>
    all.slice(first, all.length - last).map((line) => `${mark} ${line}`)
  return { line: first + 1, text: [...lines(before, "-"), ...lines(after, "+")].join("\n") }
}

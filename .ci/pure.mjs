// Says of every call at the top of a module that nothing depends on it but what it gives, so that a bundler leaves out what
// an app does not use: the compiler writes no such marks, and a bundler keeps what may have an effect.
import { parseAst } from "vitest/node"

const mark = "/* @__PURE__ */ "

/** @typedef {{ readonly type: string, readonly start: number, readonly [key: string]: unknown }} Node */

/**
 * @param {unknown} value
 * @returns {value is Node}
 */
const isNode = (value) => typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

/** Calls that are made when the module is: those in functions and methods are not. @type {(node: Node, starts: Set<number>) => void} */
const collect = (node, starts) => {
  if (node.type === "MethodDefinition" || /Function/.test(node.type)) return
  if (node.type === "CallExpression" || node.type === "NewExpression") starts.add(node.start)
  for (const value of Object.values(node)) {
    for (const each of Array.isArray(value) ? value : [value]) if (isNode(each)) collect(each, starts)
  }
}

/** A module of JavaScript, with the marks. Statements of their own are left alone: they are there for their effect. @type {(code: string) => string} */
export const annotate = (code) => {
  /** @type {Set<number>} */
  const starts = new Set()
  // oxlint-disable-next-line typescript/no-deprecated -- it is the one parser that a development dependency passes on
  for (const statement of /** @type {ReadonlyArray<Node>} */ (/** @type {unknown} */ (parseAst(code).body))) {
    const declared = statement.type === "ExportNamedDeclaration" ? statement["declaration"] : statement
    if (isNode(declared) && (declared.type === "VariableDeclaration" || declared.type === "ClassDeclaration")) {
      collect(declared, starts)
    }
  }
  let marked = code
  for (const start of [...starts].sort((a, b) => b - a)) marked = marked.slice(0, start) + mark + marked.slice(start)
  return marked
}

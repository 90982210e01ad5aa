import * as Tool from "effect/ai/Tool"
import type * as Summarizer from "../Summarizer.ts"
import * as Recalled from "../text/recalled.ts"

export const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  (typeof value === "object" || typeof value === "function") && value !== null

const isTool = (value: unknown): value is Tool.Any =>
  isRecord(value) && typeof value.name === "string" && "parametersSchema" in value

/** The tools of a call, for a summary that is going to be asked for with the same ones; `undefined` where there are none. */
export const setOf = (toolkit: unknown): Summarizer.ToolSet | undefined => {
  if (!isRecord(toolkit) || !isRecord(toolkit.tools)) return undefined
  const tools = Object.entries(toolkit.tools).flatMap(([name, tool]) => isTool(tool) ? [[name, tool] as const] : [])
  return tools.length === 0 ? undefined : Object.fromEntries(tools)
}

/** Says that the model has the tools which give back what has left its view, where they are among these. */
export const recallOf = (tools: Summarizer.ToolSet | undefined): { readonly recall?: true } =>
  tools !== undefined && Object.hasOwn(tools, Recalled.search) && Object.hasOwn(tools, Recalled.read)
    ? { recall: true }
    : {}

const priced = new WeakMap<object, number>()

const charsPerToken = 4

/**
 * The price of the definitions of tools, in tokens: of their names, descriptions and parameters as JSON Schema. A toolkit
 * that has yet to be built, as an effect, says nothing.
 */
export const priceOf = (toolkit: unknown): number => {
  if (!isRecord(toolkit) || !isRecord(toolkit.tools)) return 0
  const { tools } = toolkit
  const known = priced.get(tools)
  if (known !== undefined) return known
  let chars = 0
  for (const tool of Object.values(tools)) {
    if (!isTool(tool)) continue
    // The name of any tool is typed as anything; it is a text.
    chars += String(tool.name).length + (tool.description ?? "").length
    chars += JSON.stringify(Tool.getJsonSchema(tool)).length
  }
  const price = Math.ceil(chars / charsPerToken)
  priced.set(tools, price)
  return price
}

/** The names of the tools that give back what has left a view, for whoever tells a model of them. */

export const search = "recall_search"
export const read = "recall_read"

/** The same tools behind the prefix that a client of an MCP server puts before their names. */
const ours = /(?:^|[^A-Za-z0-9])recall_(?:search|read)$/

/** Whether a tool is one of these: what it returned is a copy of what stands elsewhere. */
export const isOurs = (tool: string): boolean => ours.test(tool)

/** What a shortened result tells the model to read. */
export const locator = (seq: number): string => `entry ${seq} with ${read}`

const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/**
 * Where text stops being JSON; its length where it only ends too early. `JSON.parse` names the place in some of its
 * messages alone, and not in all versions of Node.js.
 */
export const errorAt = (text: string): number => {
  // For each open bracket whether it is an object.
  const open: Array<boolean> = []
  let expected: "value" | "value or end" | "key" | "key or end" | "colon" | "next" = "value"
  let at = 0
  const matches = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    if (!pattern.test(text)) return false
    at = pattern.lastIndex
    return true
  }
  const string = (): boolean => {
    for (at++; at < text.length;) {
      const code = text.charCodeAt(at)
      if (code === 34) {
        at++
        return true
      }
      if (code === 92) {
        if (!matches(escape)) return false
      } else if (code < 32) {
        return false
      } else {
        at++
      }
    }
    return false
  }
  for (;;) {
    while (at < text.length && " \t\n\r".includes(text.charAt(at))) at++
    const char = text.charAt(at)
    const inObject = open.at(-1)
    if (expected === "colon") {
      if (char !== ":") return at
      at++
      expected = "value"
    } else if (
      (char === "}" && inObject === true && (expected === "next" || expected === "key or end")) ||
      (char === "]" && inObject === false && (expected === "next" || expected === "value or end"))
    ) {
      open.pop()
      at++
      expected = "next"
    } else if (expected === "next") {
      if (char !== "," || inObject === undefined) return at
      at++
      expected = inObject ? "key" : "value"
    } else if (expected === "key" || expected === "key or end") {
      if (char !== "\"" || !string()) return at
      expected = "colon"
    } else if (char === "{" || char === "[") {
      open.push(char === "{")
      at++
      expected = char === "{" ? "key or end" : "value or end"
    } else {
      if (char === "\"" ? !string() : !matches(scalar)) return at
      expected = "next"
    }
  }
}

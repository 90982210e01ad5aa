import * as Sha256 from "../text/sha256.ts"

/** What Windows takes for a device, whatever directory it stands in. */
const device = /^(?:con|prn|aux|nul|com\d|lpt\d)$/

/** Half of what a directory may be called, so that there is room for a suffix. */
const limit = 120

const escaped = (unit: string): string => {
  const code = unit.charCodeAt(0)
  return code < 0x100 ? `%${code.toString(16).padStart(2, "0")}` : `%u${code.toString(16).padStart(4, "0")}`
}

/**
 * A name for an id, whatever the id is: no two ids share one, not even where a file system takes capital letters for small
 * ones. Small letters, digits, `-` and `_` stand for themselves, every other unit of UTF-16 for its number. An id whose
 * name would be long gets its beginning and a digest; {@link idOf} cannot read that back.
 */
export const ofId = (id: string): string => {
  if (id === "") return "%"
  const name = device.test(id) ? escaped(id) + id.slice(1) : id.replaceAll(/[^a-z0-9_-]/g, escaped)
  return name.length <= limit ? name : `${name.slice(0, limit - 66)}%.${Sha256.hex(name)}`
}

/** Whether a name holds a digest of its id, and not the id. */
export const isDigest = (name: string): boolean => name.includes("%.")

/** The id of a name of {@link ofId}; `undefined` for what is none, or a digest. */
export const idOf = (name: string): string | undefined => {
  if (name === "%") return ""
  const id = name.replaceAll(
    /%u([0-9a-f]{4})|%([0-9a-f]{2})/g,
    (_, wide: string | undefined, narrow: string | undefined) =>
      String.fromCharCode(Number.parseInt(wide ?? narrow ?? "", 16))
  )
  return ofId(id) === name && !isDigest(name) ? id : undefined
}

/** Width and height of an image, in pixels. */
export interface Size {
  readonly width: number
  readonly height: number
}

/** A JPEG says its size behind its metadata, which may be tens of kilobytes long; further in nobody looks. */
const searched = 98_304

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
const values = new Map(Array.from(alphabet, (character, value) => [character.charCodeAt(0), value]))

/** The first bytes of base64 text, up to the first character that does not belong to it. */
const fromBase64 = (text: string, from: number): Uint8Array => {
  const end = Math.min(text.length, from + Math.ceil(searched / 3) * 4)
  const bytes = new Uint8Array(Math.floor(((end - from) * 3) / 4))
  let length = 0
  let bits = 0
  let held = 0
  for (let at = from; at < end; at++) {
    const value = values.get(text.charCodeAt(at))
    if (value === undefined) break
    held = (held << 6) | value
    bits += 6
    if (bits >= 8) {
      bits -= 8
      bytes[length++] = (held >> bits) & 0xff
    }
  }
  return bytes.subarray(0, length)
}

const bytesOf = (data: unknown): Uint8Array | undefined => {
  if (data instanceof Uint8Array) return data.subarray(0, searched)
  const text = data instanceof URL ? data.href : data
  if (typeof text !== "string") return undefined
  if (!text.startsWith("data:")) return text.includes(":") ? undefined : fromBase64(text, 0)
  const comma = text.indexOf(";base64,")
  return comma < 0 ? undefined : fromBase64(text, comma + 8)
}

const at = (bytes: Uint8Array, index: number): number => bytes[index] ?? 0
const big16 = (bytes: Uint8Array, index: number): number => at(bytes, index) * 256 + at(bytes, index + 1)
const little16 = (bytes: Uint8Array, index: number): number => at(bytes, index) + at(bytes, index + 1) * 256
const little24 = (bytes: Uint8Array, index: number): number => little16(bytes, index) + at(bytes, index + 2) * 65_536
const ascii = (bytes: Uint8Array, index: number, length: number): string =>
  String.fromCharCode(...bytes.subarray(index, index + length))

const png = (bytes: Uint8Array): Size => ({
  width: big16(bytes, 16) * 65_536 + big16(bytes, 18),
  height: big16(bytes, 20) * 65_536 + big16(bytes, 22)
})

/** The frame header of a JPEG is the first marker C0–CF that is none of DHT, JPG and DAC. */
const jpeg = (bytes: Uint8Array): Size | undefined => {
  let index = 2
  while (index + 9 < bytes.length) {
    if (at(bytes, index) !== 0xff) return undefined
    const marker = at(bytes, index + 1)
    if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      return { height: big16(bytes, index + 5), width: big16(bytes, index + 7) }
    }
    index += 2 + big16(bytes, index + 2)
  }
  return undefined
}

const webp = (bytes: Uint8Array): Size | undefined => {
  switch (ascii(bytes, 12, 4)) {
    case "VP8X":
      return { width: little24(bytes, 24) + 1, height: little24(bytes, 27) + 1 }
    case "VP8 ":
      return { width: little16(bytes, 26) & 0x3fff, height: little16(bytes, 28) & 0x3fff }
    case "VP8L": {
      const bits = little16(bytes, 21) + little16(bytes, 23) * 65_536
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
    }
    default:
      return undefined
  }
}

const read = (bytes: Uint8Array): Size | undefined => {
  if (bytes.length < 10) return undefined
  if (bytes.length >= 24 && at(bytes, 0) === 0x89 && ascii(bytes, 1, 3) === "PNG") return png(bytes)
  if (ascii(bytes, 0, 3) === "GIF") return { width: little16(bytes, 6), height: little16(bytes, 8) }
  if (at(bytes, 0) === 0xff && at(bytes, 1) === 0xd8) return jpeg(bytes)
  if (bytes.length >= 30 && ascii(bytes, 0, 4) === "RIFF" && ascii(bytes, 8, 4) === "WEBP") return webp(bytes)
  return undefined
}

/** The size that a PNG, GIF, JPEG or WebP states in its header, given as bytes, as base64 or as a data URL. */
export const dimensions = (data: unknown): Size | undefined => {
  const bytes = bytesOf(data)
  const size = bytes === undefined ? undefined : read(bytes)
  return size !== undefined && size.width > 0 && size.height > 0 ? size : undefined
}

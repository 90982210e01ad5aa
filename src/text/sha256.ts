/**
 * SHA-256 (FIPS 180-4) of a text in UTF-8, as lowercase hex. The digests of `effect/crypto` are effects, and a decision is
 * made in pure code.
 */
export const hex = (text: string): string => {
  const bytes = new TextEncoder().encode(text)
  const blocks = new Uint8Array((((bytes.length + 8) >> 6) + 1) << 6)
  blocks.set(bytes)
  blocks[bytes.length] = 0x80
  const view = new DataView(blocks.buffer)
  view.setUint32(blocks.length - 8, Math.floor(bytes.length / 0x20000000))
  view.setUint32(blocks.length - 4, bytes.length << 3)
  const state = Uint32Array.from(initial)
  const words = new Uint32Array(64)
  for (let offset = 0; offset < blocks.length; offset += 64) compress(state, words, view, offset)
  let out = ""
  for (const word of state) out += word.toString(16).padStart(8, "0")
  return out
}

const isPrime = (n: number): boolean => {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false
  return true
}

const primes: Array<number> = []
for (let n = 2; primes.length < 64; n++) if (isPrime(n)) primes.push(n)

/** The first 32 bits of the fraction of a root: exact, because a double holds 52 of them. */
const fraction = (root: number): number => ((root - Math.floor(root)) * 0x1_0000_0000) >>> 0

const initial = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)))
const constants = Uint32Array.from(primes, (prime) => fraction(Math.cbrt(prime)))

const rotate = (word: number, by: number): number => (word >>> by) | (word << (32 - by))

const compress = (state: Uint32Array, words: Uint32Array, view: DataView, offset: number): void => {
  for (let t = 0; t < 16; t++) words[t] = view.getUint32(offset + t * 4)
  for (let t = 16; t < 64; t++) {
    const early = words[t - 15]!
    const late = words[t - 2]!
    const low = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3)
    const high = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10)
    words[t] = words[t - 16]! + low + words[t - 7]! + high
  }
  let a = state[0]!
  let b = state[1]!
  let c = state[2]!
  let d = state[3]!
  let e = state[4]!
  let f = state[5]!
  let g = state[6]!
  let h = state[7]!
  for (let t = 0; t < 64; t++) {
    const one = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + constants[t]! + words[t]!
    const two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
    h = g
    g = f
    f = e
    e = (d + one) | 0
    d = c
    c = b
    b = a
    a = (one + two) | 0
  }
  const worked = [a, b, c, d, e, f, g, h]
  for (let n = 0; n < 8; n++) state[n] = state[n]! + worked[n]!
}

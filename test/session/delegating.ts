import * as FileSystem from "effect/FileSystem"

/** A file of the real disk, but for what is done otherwise: its methods are not its own, so that a copy has none of them. */
export const file = (real: FileSystem.File, otherwise: Partial<FileSystem.File>): FileSystem.File => ({
  [FileSystem.FileTypeId]: FileSystem.FileTypeId,
  stat: real.stat,
  sync: real.sync,
  seek: (offset, from) => real.seek(offset, from),
  read: (buffer, options) => real.read(buffer, options),
  readAlloc: (size, options) => real.readAlloc(size, options),
  truncate: (length) => real.truncate(length),
  write: (bytes) => real.write(bytes),
  writeAll: (bytes) => real.writeAll(bytes),
  ...otherwise
})

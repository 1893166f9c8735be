// Who owns which part of an area.

/** A part of an area with one owner, up to `end` (a fraction of the area). */
export interface Band { end: number; thread: number }

/** The owners that a distribution names: null where its words do not tell where each part lies. The chunks of CYCLIC
 *  are dealt from thread 0 on. */
export function ownerBands(distribution: string | null | undefined, threads: number, pages: number): Band[] | null {
  const words = distribution ?? ""
  const block = /^BLOCK over (\d+) threads?$/.exec(words)
  if (block) {
    const count = Number(block[1])
    return Array.from({ length: count }, (_, thread) => ({ end: (thread + 1) / count, thread }))
  }
  const cyclic = /^CYCLIC\((\d+) pages\)$/.exec(words)
  if (cyclic && threads > 0 && pages > 0) {
    const chunk = Number(cyclic[1])
    return Array.from({ length: Math.ceil(pages / chunk) }, (_, at) => ({ end: Math.min(1, ((at + 1) * chunk) / pages), thread: at % threads }))
  }
  const single = /^SINGLE on thread (\d+)$/.exec(words)
  return single ? [{ end: 1, thread: Number(single[1]) }] : null
}

/** The same by touches that were seen, where words do not tell (blocks of several sizes, tiles): each page to the
 *  thread that touched it most, borders half way between pages of two. places: byte and thread of each touch. */
export function touchedBands(places: { byte: number; thread: number }[], bytes: number, page: number): Band[] | null {
  const pages = new Map<number, Map<number, number>>()
  for (const one of places) {
    const at = Math.floor(one.byte / page)
    const of = pages.get(at) ?? new Map<number, number>()
    pages.set(at, of.set(one.thread, (of.get(one.thread) ?? 0) + 1))
  }
  const bands: Band[] = []
  let last = -1
  for (const at of [...pages.keys()].sort((a, b) => a - b)) {
    let thread = -1, most = 0
    for (const [one, count] of pages.get(at)!) if (count > most || (count === most && one === bands.at(-1)?.thread)) { thread = one; most = count }
    const before = bands.at(-1)
    if (before && before.thread !== thread) { before.end = (((last + at + 1) / 2) * page) / bytes; bands.push({ end: 1, thread }) }
    if (!before) bands.push({ end: 1, thread })
    last = at
  }
  return bands.length ? bands : null
}

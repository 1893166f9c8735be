// What the page is made of: the results (the JSON that `homing report --json` writes), and what the views need
// beside them (homing/report/html/views.py).

export interface Share { before: number | null; after: number | null; before_interval: number[] | null; after_interval: number[] | null; touches: number; pages: number; effective_samples: number }
export interface Placement { pages: number[]; absent: number; sampled: boolean }
export interface Owners { kind: string; confidence: number | null; samples: number; distribution: string | null; known_pages: number }
export interface Place { function: string | null; file: string | null; line: number | null; text?: string | null }
export interface Area {
  id: number; name: string; title: string; kind: string; count: number; bytes: number; live_bytes: number; object: string | null
  first_touch: { function: string | null; file: string | null; line: number | null; text: string | null; threads: number[]; nodes: number[]; share: number; samples: number }[]
  source: Place | null; callers: Place[]; variable: string | null; ended: boolean
  before: Placement | null; after: Placement | null; owners: Owners | null
  owners_by_region: { offset: number | null; followed: boolean; touches: number; distribution: string | null; confidence: number | null }[]
  guard: { remote_seconds: number; move_seconds: number; permitted: boolean } | null
  left: { reason: string; pages: number | null; text: string } | null
  moved_pages: number; refused: Record<string, number>; remote_fraction: Share
}
export interface NodeOf { position: number | null; index: number; cpus: number; memory_bytes: number; free_bytes: number; target: boolean }
export interface Iteration { number: number; time: number; seconds: number; regions: number; state: string; basis: string; references: number; moved: number; overhead_seconds: number }
export interface Process {
  record: { pid: number; rank: number | null; program: string; arguments: string[]; host: string; start: number; homing: string; page_bytes: number; complete: boolean; truncated: boolean; ended_by: string | null }
  facts: Record<string, string>
  messages: { level: string; text: string; repeats: number }[]
  nodes: NodeOf[]; distances: (number | null)[][]
  threads: { thread: number; node: number | null; cpu: number; bound: boolean }[]
  iterations: { count: number; settled_at: number | null; basis: string | null; period_regions: number | null; rows: Iteration[] }
  areas: Area[]
  moved_pages: number; moved_bytes: number; refused: Record<string, number>
  moves: { area: number | null; iteration: number; time: number; moved: number; refused: number; wanted: number; seconds: number }[]
  remote_fraction: Share
  unwatched: { what: string; bytes: number }[]
  seconds: { run: number; parallel: number | null; observing: number; deciding: number; moving: number; hooks: number }
  windows: { armed: number; touched: number; calls: number }
}
export interface Figures { misses: number[][]; total_misses: number; remote_misses: number; remote_fraction: number }
export interface Counts {
  source?: string; run: Figures & { oracle_remote_fraction: number | null }
  phases?: (Figures & { phase: number })[]
  iterations?: (Figures & { number: number })[]
  regions?: (Figures & { object: string; offset: number; symbol: string | null; count: number })[]
  areas?: (Figures & { id: number; title: string })[]
  lines?: (Figures & { file: string; line: number | null; function: string | null })[]
}
export interface Run { homing: string; command: string[] | null; exit_status: number | null; seconds: number | null; aside: string | null; notes: string[]; processes: Process[]; counts: Counts | null }

export interface LineTouches { file: string; line: number; function: string; touches: number; found: [number, number]; end: [number, number] }
export interface ProcessViews {
  verdict: { cost: string; done: string; advice: { text: string; evidence: string; area: number | null; gain: { before: number; after: number } | null }[] }
  missing: Record<string, string>
  lines: LineTouches[]
  regions: { id: number; name: string; count: number; seconds: number }[]
  region_touches: { region: number; matrix: number[][] }[]
  areas: { ids: (number | number[])[]; begin: number[]; traffic: number[] }
  iterations_seen: number; exact: boolean; by_access: boolean; parallel: number | null
}
interface Views { processes: ProcessViews[]; text: Record<string, Record<string, string>>; no_text: Record<string, string>; arrays: Record<string, [string, number, number]> }

type Numbers = Uint8Array | Int16Array | Uint16Array | Uint32Array | Float32Array

/** Where an area's pages were at one moment: runs of granules, nodes by position, -1 not populated. */
export interface PageMap { id: number; when: number; granules: number; step: number; granuleBytes: number; first: Uint32Array; node: Int16Array }
export interface Touched { id: number; granule: Uint32Array; thread: Uint16Array; node: Int16Array }
export interface Matrix { label: string; unit: string; cells: ArrayLike<number>; size: number }

export const FOUND = 1, AT_END = 3

async function inflated(text: string): Promise<ArrayBuffer> {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))
  return new Response(stream).arrayBuffer()
}

async function json<T>(id: string): Promise<T> {
  const element = document.getElementById(id)!
  const text = element.textContent ?? ""
  return JSON.parse(element.dataset.encoding === "gzip" ? new TextDecoder().decode(await inflated(text)) : text) as T
}

/** Everything of one process. */
export class ProcessData {
  readonly nodeCount: number
  /** The operating system's index of the node at each position. */
  readonly nodeIndex: number[]
  /** The position of each thread's node, -1 where it is not bound. */
  readonly threadNode: number[]
  /** Where each area's id stands in the report. */
  readonly resultOf = new Map<number, number>()
  private maps = new Map<number, PageMap[]>()
  private touched = new Map<number, Touched[]>()

  constructor(readonly number: number, readonly json: Process, readonly views: ProcessViews, private arrays: (name: string) => Numbers | null) {
    this.nodeIndex = []
    for (const node of json.nodes) if (node.position !== null) this.nodeIndex[node.position] = node.index
    this.nodeCount = this.nodeIndex.length
    const position = new Map(json.nodes.map(node => [node.index, node.position ?? -1]))
    this.threadNode = json.threads.map(thread => (thread.bound && thread.node !== null ? position.get(thread.node) ?? -1 : -1))
    views.areas.ids.forEach((ids, result) => { for (const id of Array.isArray(ids) ? ids : [ids]) this.resultOf.set(id, result) })
    this.readMaps()
    this.readTouches()
  }

  private readMaps(): void {
    const table = this.arrays(`${this.number}/maps`)
    if (!table) return
    const lengths = this.arrays(`${this.number}/map-lengths`) as Uint32Array
    const nodes = this.arrays(`${this.number}/map-nodes`) as Int16Array
    for (let i = 0; i < table.length; i += 8) {
      const [result, id, when, begin, count, granules, step, granuleBytes] = table.subarray(i, i + 8)
      const first = new Uint32Array(count)
      for (let run = 0, at = 0; run < count; run++) { first[run] = at; at += lengths[begin + run] }
      const map = { id, when, granules, step, granuleBytes, first, node: nodes.subarray(begin, begin + count) }
      const known = this.maps.get(result)
      if (known) known.push(map)
      else this.maps.set(result, [map])
    }
  }

  private readTouches(): void {
    const table = this.arrays(`${this.number}/touched`)
    if (!table) return
    const granules = this.arrays(`${this.number}/touch-granules`) as Uint32Array
    const threads = this.arrays(`${this.number}/touch-threads`) as Uint16Array
    const nodes = this.arrays(`${this.number}/touch-nodes`) as Int16Array
    for (let i = 0; i < table.length; i += 4) {
      const [result, id, begin, count] = table.subarray(i, i + 4)
      const part = { id, granule: granules.subarray(begin, begin + count), thread: threads.subarray(begin, begin + count), node: nodes.subarray(begin, begin + count) }
      this.touched.set(result, [...(this.touched.get(result) ?? []), part])
    }
  }

  /** The maps of an area's line at one moment: one for each block, in the order of their addresses. */
  mapsOf(result: number, when: number): PageMap[] {
    return (this.maps.get(result) ?? []).filter(map => map.when === when)
  }

  touchesOf(result: number): Touched[] {
    return this.touched.get(result) ?? []
  }

  get hasMaps(): boolean { return this.maps.size > 0 }
  get hasTouches(): boolean { return this.touched.size > 0 }

  /** Sampled references of an area: node of the thread by home node. */
  referencesOf(result: number): Float32Array | null {
    const areas = this.arrays(`${this.number}/ref-areas`)
    const at = areas ? (areas as Uint32Array).indexOf(result) : -1
    return at < 0 ? null : this.matrixAt("refs", at)
  }

  /** The numbers of the iterations with sampled references. */
  get referenceIterations(): Uint32Array {
    return (this.arrays(`${this.number}/ref-iterations`) as Uint32Array | null) ?? new Uint32Array()
  }

  referencesIn(at: number): Float32Array { return this.matrixAt("iteration-refs", at) }

  private matrixAt(name: string, at: number): Float32Array {
    const all = this.arrays(`${this.number}/${name}`) as Float32Array
    const cells = this.nodeCount * this.nodeCount
    return all.subarray(at * cells, (at + 1) * cells)
  }

  get allReferences(): Float32Array | null {
    const count = this.referenceIterations.length
    if (!count) return null
    const sum = new Float32Array(this.nodeCount * this.nodeCount)
    for (let i = 0; i < count; i++) this.referencesIn(i).forEach((value, cell) => { sum[cell] += value })
    return sum
  }
}

export interface Data { run: Run; processes: ProcessData[]; text: Record<string, Record<string, string>>; noText: Record<string, string> }

export async function load(): Promise<Data> {
  const [run, views, bytes] = await Promise.all([json<Run>("run"), json<Views>("views"), inflated(document.getElementById("arrays")!.textContent ?? "")])
  const types: Record<string, new (buffer: ArrayBuffer, offset: number, length: number) => Numbers> = { Uint8Array, Int16Array, Uint16Array, Uint32Array, Float32Array }
  const arrays = (name: string): Numbers | null => {
    const entry = views.arrays[name]
    return entry ? new types[entry[0]](bytes, entry[1], entry[2]) : null
  }
  return {
    run,
    processes: run.processes.map((one, number) => new ProcessData(number, one, views.processes[number], arrays)),
    text: views.text,
    noText: views.no_text,
  }
}

/** The part of a matrix that is off its diagonal. */
export function remoteShare(cells: ArrayLike<number>, size: number): number | null {
  let all = 0, local = 0
  for (let i = 0; i < size * size; i++) { all += cells[i]; if (i % (size + 1) === 0) local += cells[i] }
  return all > 0 ? 1 - local / all : null
}

// Drawing pages: address from left to right, one lane for each node from top to bottom. What lies where is told by
// position; colour repeats it. A column of pixels holds many pages: a lane's strength is its node's share of them.

import type { Band } from "./bands"
import type { PageMap, Touched } from "./data"
import { colour, nodeColour, nodeRgb } from "./theme"

export interface View { from: number; to: number } // bytes of the area (its blocks one behind the other)

/** The blocks of an area as one line of addresses. */
export interface Line { maps: PageMap[]; begins: number[]; bytes: number }

export function lineOf(maps: PageMap[]): Line {
  const begins: number[] = []
  let bytes = 0
  for (const map of maps) { begins.push(bytes); bytes += map.granules * map.granuleBytes }
  return { maps, begins, bytes }
}

function runAt(map: PageMap, granule: number): number {
  let low = 0, high = map.first.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (map.first[middle] <= granule) low = middle
    else high = middle - 1
  }
  return low
}

/** The node at a byte of the line: -1 not populated, null outside. */
export function nodeAt(line: Line, byte: number): number | null {
  for (let i = line.maps.length - 1; i >= 0; i--) {
    if (byte < line.begins[i]) continue
    const map = line.maps[i]
    const granule = Math.floor((byte - line.begins[i]) / map.granuleBytes)
    return granule < map.granules ? map.node[runAt(map, granule)] : null
  }
  return null
}

/** For each column and node, the share of the column that lies there. Linear in the runs in view. */
export function shares(line: Line, view: View, columns: number, nodes: number): Float32Array {
  const held = new Float32Array(columns * nodes)
  const scale = columns / (view.to - view.from)
  for (let i = 0; i < line.maps.length; i++) {
    const map = line.maps[i], origin = line.begins[i], bytes = map.granuleBytes
    const end = origin + map.granules * bytes
    if (end <= view.from || origin >= view.to) continue
    const { first, node } = map
    const last = first.length
    let run = runAt(map, Math.max(0, Math.floor((view.from - origin) / bytes)))
    let x0 = Math.max(0, (origin + first[run] * bytes - view.from) * scale)
    for (; run < last && x0 < columns; run++) {
      const stop = run + 1 < last ? origin + first[run + 1] * bytes : end
      const x1 = Math.min(columns, (stop - view.from) * scale)
      const at = node[run]
      if (at >= 0) {
        const c0 = x0 | 0, c1 = x1 | 0
        if (c0 === c1) held[c0 * nodes + at] += x1 - x0
        else {
          held[c0 * nodes + at] += c0 + 1 - x0
          for (let c = c0 + 1; c < c1; c++) held[c * nodes + at] += 1
          if (c1 < columns) held[c1 * nodes + at] += x1 - c1
        }
      }
      x0 = x1
    }
  }
  return held
}

/** A canvas of a size in CSS pixels, cleared; its context and the size in its own pixels. */
export function prepared(canvas: HTMLCanvasElement, width: number, height: number): [CanvasRenderingContext2D, number, number] {
  const ratio = Math.min(2, devicePixelRatio || 1)
  const w = Math.max(1, Math.round(width * ratio)), hgt = Math.max(1, Math.round(height * ratio))
  if (canvas.width !== w || canvas.height !== hgt) { canvas.width = w; canvas.height = hgt }
  canvas.style.height = `${height}px`
  const context = canvas.getContext("2d")!
  context.clearRect(0, 0, w, hgt)
  return [context, w, hgt]
}

function separators(context: CanvasRenderingContext2D, lanes: number, width: number, height: number): void {
  if (height / lanes < 4) return
  context.fillStyle = colour("lane-line")
  for (let lane = 1; lane < lanes; lane++) context.fillRect(0, Math.round((lane * height) / lanes), width, 1)
}

export function drawPages(canvas: HTMLCanvasElement, line: Line, view: View, nodes: number, width: number, height: number, only: number | null): void {
  const [context, w, hgt] = prepared(canvas, width, height)
  if (!line.maps.length || view.to <= view.from) return
  const held = shares(line, view, w, nodes)
  const image = context.createImageData(w, hgt)
  const pixels = new Uint32Array(image.data.buffer)
  if (hgt / nodes >= 4) {
    const rule = parseInt(colour("lane-line").slice(1), 16)
    const ink = ((255 << 24) | ((rule & 255) << 16) | (rule & 0xff00) | (rule >> 16)) >>> 0
    for (let lane = 1; lane < nodes; lane++) { const y = Math.round((lane * hgt) / nodes); pixels.fill(ink, y * w, (y + 1) * w) }
  }
  for (let lane = 0; lane < nodes; lane++) {
    const [red, green, blue] = nodeRgb(lane)
    const ink = (blue << 16) | (green << 8) | red
    const faint = only !== null && only !== lane ? 0.25 : 1
    const top = Math.round((lane * hgt) / nodes), bottom = Math.max(top + 1, Math.round(((lane + 1) * hgt) / nodes) - (hgt / nodes >= 4 ? 1 : 0))
    for (let x = 0; x < w; x++) {
      const share = held[x * nodes + lane]
      if (share <= 0.002) continue
      // A single page among thousands is to be seen, too.
      const alpha = Math.round(255 * faint * Math.min(1, 0.18 + 0.82 * share))
      const value = ((alpha << 24) | ink) >>> 0
      for (let y = top + (top > 0 ? 1 : 0); y < bottom; y++) pixels[y * w + x] = value
    }
  }
  context.putImageData(image, 0, 0)
}

/** The parts of owners, in the lane of each one's node; across all lanes where threads have no node. */
export function drawOwners(canvas: HTMLCanvasElement, bands: Band[], threadNode: number[], bytes: number, view: View, nodes: number, width: number, height: number): void {
  const [context, w, hgt] = prepared(canvas, width, height)
  separators(context, nodes, w, hgt)
  const ratio = w / width
  context.font = `${11 * ratio}px ${colour("mono")}`
  context.textBaseline = "middle"
  let begin = 0
  for (const band of bands) {
    const x0 = ((begin * bytes - view.from) / (view.to - view.from)) * w
    const x1 = ((band.end * bytes - view.from) / (view.to - view.from)) * w
    begin = band.end
    if (x1 < 0 || x0 > w) continue
    const node = threadNode[band.thread] ?? -1
    const top = node >= 0 ? Math.round((node * hgt) / nodes) : 0
    const tall = node >= 0 ? Math.max(2, Math.round(hgt / nodes) - 1) : hgt
    context.fillStyle = node >= 0 ? nodeColour(node) : colour("no-node")
    context.fillRect(x0, top, Math.max(1, x1 - x0 - ratio), tall)
    if (x1 - x0 > 26 * ratio && tall >= 12 * ratio) {
      context.fillStyle = colour("on-node")
      context.fillText(`t${band.thread}`, Math.max(0, x0) + 4 * ratio, top + tall / 2)
    }
  }
}

/** Where on the line the touches lie, and by whom. */
export function touchedPlaces(parts: Touched[], line: Line): { byte: number; thread: number }[] {
  const places: { byte: number; thread: number }[] = []
  for (const part of parts) {
    const at = line.maps.findIndex(map => map.id === part.id)
    if (at < 0) continue
    for (let i = 0; i < part.granule.length; i++)
      if (part.thread[i] !== 0xffff) places.push({ byte: line.begins[at] + (part.granule[i] + 0.5) * line.maps[at].granuleBytes, thread: part.thread[i] })
  }
  return places
}

/** Touches: where in the area, by which thread (lanes). */
export function drawTouches(canvas: HTMLCanvasElement, parts: Touched[], line: Line, view: View, threads: number, threadNode: number[], width: number, height: number): void {
  const [context, w, hgt] = prepared(canvas, width, height)
  const lanes = Math.max(1, threads)
  separators(context, lanes, w, hgt)
  const tall = Math.max(2, hgt / lanes - 1), wide = Math.max(2, w / width)
  for (const part of parts) {
    const at = line.maps.findIndex(map => map.id === part.id)
    if (at < 0) continue
    const bytes = line.maps[at].granuleBytes
    for (let i = 0; i < part.granule.length; i++) {
      const x = ((line.begins[at] + (part.granule[i] + 0.5) * bytes - view.from) / (view.to - view.from)) * w
      if (x < 0 || x > w || part.thread[i] === 0xffff) continue
      const node = part.node[i] >= 0 ? part.node[i] : threadNode[part.thread[i]]
      context.fillStyle = node >= 0 ? nodeColour(node) : colour("no-node")
      context.fillRect(x - wide / 2, (part.thread[i] * hgt) / lanes, wide, tall)
    }
  }
}

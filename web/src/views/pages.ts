// Where do the pages of each array lie, and who uses them?

import { AreaList, placementWords, remoteCell } from "../area_list"
import type { ProcessData } from "../data"
import { ownerBands, touchedBands } from "../bands"
import { AT_END, FOUND } from "../data"
import { base, count, fill, framed, h, missing, onResize, percent, seconds, size } from "../dom"
import type { View } from "../lanes"
import { drawOwners, drawPages, drawTouches, lineOf, nodeAt, touchedPlaces } from "../lanes"
import type { State } from "../state"
import { nodeColour, onTheme } from "../theme"

/** Distributions whose parts are those of one thread over the whole run, wherever these lie. */
const TOUCHES_TELL = /^(GEN_BLOCK|RUNS|GRIDS|each BLOCK|BLOCK x BLOCK)/

export function pagesView(process: () => ProcessData, state: State): { element: HTMLElement; list: AreaList; update: (changed: Set<string> | null) => void } {
  const list = new AreaList(process, state)
  const detail = h("div", { class: "detail" })
  const legend = h("ul", { class: "legend", "aria-label": "Nodes" })
  const element = h("div", {}, legend, h("div", { class: "pages" }, list.element, detail))

  let view: View = { from: 0, to: 1 }
  let redraw: () => void = () => {}
  let zoom: (factor: number, at: number) => void = () => {}
  let pan: (share: number) => void = () => {}
  onResize(detail, () => redraw())
  onTheme(() => { redraw(); showLegend() })

  const showLegend = (): void => {
    const data = process(), { node } = state.now
    legend.hidden = data.nodeCount > 16
    fill(legend, ...data.nodeIndex.map((index, position) => h("li", {}, h("button", { type: "button", "aria-pressed": String(node === position), onclick: () => state.set({ node: node === position ? null : position }) },
      h("span", { class: "swatch", style: `background:${nodeColour(position)}` }), `node ${index}`))), h("li", { class: "dim" }, "lanes from top to bottom"))
  }

  const show = (): void => {
    const data = process(), result = state.now.area
    if (result === null || !data.json.areas[result]) {
      fill(detail, h("p", { class: "dim" }, "No area was found in this run."))
      redraw = () => {}
      return
    }
    const area = data.json.areas[result]
    const found = lineOf(data.mapsOf(result, FOUND)), end = lineOf(data.mapsOf(result, AT_END))
    const touched = data.touchesOf(result)
    const longest = end.bytes >= found.bytes ? end : found
    const bytes = longest.bytes || area.bytes || 1
    view = { from: 0, to: bytes }
    const owners = area.owners?.distribution
    const stated = ownerBands(owners, data.json.threads.length, bytes / data.json.record.page_bytes)
    const bands = stated ?? (TOUCHES_TELL.test(owners ?? "") ? touchedBands(touchedPlaces(touched, longest), bytes, data.json.record.page_bytes) : null)
    const laneHeight = Math.max(2, Math.min(16, Math.floor(160 / Math.max(1, data.nodeCount))))
    const tall = laneHeight * data.nodeCount
    const touchTall = Math.max(24, Math.min(160, 6 * data.json.threads.length))
    const canvases = { found: h("canvas"), owners: h("canvas"), end: h("canvas"), touches: h("canvas") }
    const readout = h("div", { class: "readout", role: "status" })
    const axis = h("div", { class: "axis dim", "aria-hidden": "true" })
    const cross = h("div", { class: "cross", "aria-hidden": "true" })
    const plot = h("div", {
      class: "plot", tabindex: 0, id: "map", role: "application",
      "aria-label": `Page map of ${area.title}: + and - zoom, left and right pan, 0 shows all. Found: ${placementWords(area.before, data.nodeIndex)}. At the end: ${placementWords(area.after, data.nodeIndex)}.`,
    })
    const strip = (name: string, canvas: HTMLCanvasElement, text: string | null, words: string): HTMLElement =>
      h("div", { class: "strip-row" }, h("div", { class: "strip-name" }, name, h("span", { class: "dim" }, words)), text ? missing(text) : canvas)
    const sampled = (line: typeof end): string => {
      const step = Math.max(1, ...line.maps.map(map => map.step))
      return step > 1 ? `, 1 of ${count(step)} pages looked at` : ""
    }
    const unknown = (when: string): string => data.views.missing.maps ?? (when === "end" && area.ended ? "It was freed before the end." : "homing did not look at its pages then.")
    const ownersText = bands ? null
      : owners ? `Owners are ${owners === "HOME" ? "those that it lies with" : owners}: these words do not tell where each part begins.`
        : "Nothing is known of its owners: it was not sampled enough, or nobody asked."
    plot.append(
      strip("found", canvases.found, found.maps.length ? null : unknown("found"), placementWords(area.before, data.nodeIndex) + sampled(found)),
      strip("owners", canvases.owners, ownersText, owners ? `${owners === "HOME" ? "as it lies" : owners}${area.owners!.confidence !== null ? `, ${percent(area.owners!.confidence, 0)} sure` : ""}${bands && !stated ? "; borders by the touches that were seen" : ""}` : ""),
      strip("at the end", canvases.end, end.maps.length ? null : unknown("end"), placementWords(area.after, data.nodeIndex) + sampled(end)),
      strip("touched by", canvases.touches, touched.length ? null : data.views.missing.touches ?? "No touch of this area was seen.", touched.length ? `${count(touched.reduce((sum, one) => sum + one.granule.length, 0))} touches, a lane for each of ${data.json.threads.length} threads` : ""),
      axis, cross)

    redraw = framed(() => {
      const width = axis.clientWidth
      if (!width) return
      const only = state.now.node
      if (found.maps.length) drawPages(canvases.found, found, view, data.nodeCount, width, tall, only)
      if (end.maps.length) drawPages(canvases.end, end, view, data.nodeCount, width, tall, only)
      if (bands) drawOwners(canvases.owners, bands, data.threadNode, bytes, view, data.nodeCount, width, Math.max(tall, 24))
      if (touched.length) drawTouches(canvases.touches, touched, longest, view, data.json.threads.length, data.threadNode, width, touchTall)
      const ticks = Math.max(2, Math.floor(width / 130))
      fill(axis, ...Array.from({ length: ticks + 1 }, (_, i) => h("span", { style: `left:${(100 * i) / ticks}%` }, size(view.from + ((view.to - view.from) * i) / ticks))))
    })
    const least = 16 * Math.max(1, longest.maps[0]?.granuleBytes ?? 4096)
    const clamp = (from: number, width: number): void => {
      width = Math.min(bytes, Math.max(Math.min(bytes, least), width))
      from = Math.min(bytes - width, Math.max(0, from))
      view = { from, to: from + width }
      redraw()
    }
    zoom = (factor, at) => { const width = view.to - view.from; clamp(view.from + width * at * (1 - factor), width * factor) }
    pan = share => clamp(view.from + share * (view.to - view.from), view.to - view.from)
    const where = (event: { clientX: number }): number => { const box = axis.getBoundingClientRect(); return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) }
    const tell = (x: number): void => {
      const byte = view.from + x * (view.to - view.from)
      const words = (node: number | null): string => (node === null ? "not known" : node < 0 ? "nowhere yet" : `node ${data.nodeIndex[node]}`)
      let owner = ""
      if (bands) {
        const band = bands.find(one => byte < one.end * bytes) ?? bands[bands.length - 1]
        const node = data.threadNode[band.thread] ?? -1
        owner = `owner thread ${band.thread}${node >= 0 ? ` on node ${data.nodeIndex[node]}` : ""}`
      }
      const page = Math.floor(byte / data.json.record.page_bytes)
      fill(readout, ...[`+${size(byte)}`, `page ${count(page)}`, found.maps.length && `found on ${words(nodeAt(found, byte))}`, owner, end.maps.length && `at the end on ${words(nodeAt(end, byte))}`].filter(Boolean).map(one => h("span", {}, one as string)))
      cross.style.left = `${axis.offsetLeft + x * axis.clientWidth}px`
      cross.hidden = false
    }
    let grip: { x: number; from: number } | null = null
    plot.addEventListener("pointermove", event => {
      if (grip) clamp(grip.from - ((event.clientX - grip.x) / axis.clientWidth) * (view.to - view.from), view.to - view.from)
      tell(where(event))
    })
    plot.addEventListener("pointerdown", event => { grip = { x: event.clientX, from: view.from }; plot.setPointerCapture(event.pointerId) })
    plot.addEventListener("pointerup", () => { grip = null })
    plot.addEventListener("pointercancel", () => { grip = null })
    plot.addEventListener("pointerleave", () => { cross.hidden = true })
    plot.addEventListener("dblclick", () => clamp(0, bytes))
    plot.addEventListener("wheel", event => {
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / axis.clientWidth)
      else if (event.ctrlKey || event.shiftKey || event.metaKey) zoom(Math.exp((event.deltaY || event.deltaX) / 300), where(event))
      else return // the page scrolls
      event.preventDefault()
    }, { passive: false })
    plot.addEventListener("keydown", event => {
      const keys: Record<string, () => void> = { "+": () => zoom(0.5, 0.5), "=": () => zoom(0.5, 0.5), "-": () => zoom(2, 0.5), "0": () => clamp(0, bytes), ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25) }
      if (event.key in keys && !event.ctrlKey && !event.metaKey) { event.preventDefault(); event.stopPropagation(); keys[event.key]() }
    })
    cross.hidden = true
    fill(detail,
      h("div", { class: "detail-head" }, h("h3", {}, area.title),
        h("div", { class: "zoom" }, button("−", "Zoom out", () => zoom(2, 0.5)), button("+", "Zoom in", () => zoom(0.5, 0.5)), button("all", "Show all", () => clamp(0, bytes)))),
      facts(area, data, result), plot, readout)
    fill(readout, h("span", { class: "dim" }, "Drag or arrow keys pan, + and − or ctrl-wheel zoom, 0 shows all."))
    redraw()
  }

  const update = (changed: Set<string> | null): void => {
    if (!changed || changed.has("process") || changed.has("filter") || changed.has("node")) { list.refill(); showLegend() }
    if (!changed || changed.has("area") || changed.has("process")) { show(); list.reveal() }
    else if (changed.has("node")) redraw()
  }
  return { element, list, update }
}

function button(text: string, label: string, press: () => void): HTMLElement {
  return h("button", { type: "button", "aria-label": label, onclick: press }, text)
}

function facts(area: ProcessData["json"]["areas"][number], data: ProcessData, result: number): HTMLElement {
  const remote = area.remote_fraction
  const row = (name: string, ...value: (Node | string | false | null)[]): HTMLElement => h("div", {}, h("dt", {}, name), h("dd", {}, ...value))
  const regions = area.owners_by_region.filter(one => one.distribution)
  return h("dl", { class: "facts" },
    row("size", `${size(area.live_bytes)} at one time${area.count > 1 ? `, ${count(area.count)} blocks, ${size(area.bytes)} in all` : ""}, ${area.kind}`),
    row("remote", remoteCell(remote), remote.before_interval && remote.after_interval ? h("span", { class: "dim" }, ` 95 %: ${percent(remote.before) !== percent(remote.after) ? `${range(remote.before_interval)} and ` : ""}${range(remote.after_interval)}; ${count(remote.touches)} touches of ${count(remote.pages)} pages`) : ""),
    row("moved", `${count(area.moved_pages)} pages`, Object.keys(area.refused).length > 0 && h("span", { class: "dim" }, ` refused: ${Object.entries(area.refused).map(([name, pages]) => `${count(pages)} ${name}`).join(", ")}`)),
    area.source && row("from", h("a", { href: "#source", "data-line": `${area.source.file}:${area.source.line}` }, `${base(area.source.file)}:${area.source.line}`), area.source.function ? ` in ${area.source.function}` : "", area.callers.length > 0 && h("span", { class: "dim" }, ` from ${area.callers.map(one => `${one.function ?? "?"}${one.line ? ` (${base(one.file)}:${one.line})` : ""}`).join(", ")}`)),
    area.guard && row("account", `${area.moved_pages ? "since the last move " : ""}remote accesses cost ${seconds(area.guard.remote_seconds)}, ${area.moved_pages ? "another" : "the move"} takes ${seconds(area.guard.move_seconds)}: ${area.guard.permitted ? "permitted" : "not worth it yet"}`),
    area.left && row("left", area.left.text),
    regions.length > 1 && row("by region", regions.map(one => `${one.distribution}${one.followed ? " (followed)" : ""}`).join("; ")),
    data.views.areas.traffic[result] > 0 && area.ended && row("ended", "freed before the end of the run"))
}

function range(within: number[]): string {
  return `${(100 * within[0]).toFixed(1)}–${(100 * within[1]).toFixed(1)} %`
}

// The areas of a process: a list of any length, of which only what is seen exists. Filtered, sorted, and run through
// with the arrow keys.

import type { Area, ProcessData } from "./data"
import { AT_END, FOUND } from "./data"
import { count, framed, h, onResize, percent, size } from "./dom"
import { drawPages, lineOf } from "./lanes"
import type { State } from "./state"
import { colour, onTheme } from "./theme"

const ROW = 30
/** Printed: so many, and a line that says how many more there are. */
const PRINTED = 60

type Order = "size" | "name" | "remote" | "moved"
const ORDERS: Record<Order, (data: ProcessData) => (a: number, b: number) => number> = {
  size: data => (a, b) => data.json.areas[b].live_bytes - data.json.areas[a].live_bytes,
  name: data => (a, b) => data.json.areas[a].title.localeCompare(data.json.areas[b].title),
  remote: data => (a, b) => remoteWeight(data, b) - remoteWeight(data, a),
  moved: data => (a, b) => data.json.areas[b].moved_pages - data.json.areas[a].moved_pages,
}

/** What an area contributed to the remote touches of the run, as it was found. */
function remoteWeight(data: ProcessData, result: number): number {
  return (data.json.areas[result].remote_fraction.before ?? 0) * data.views.areas.traffic[result]
}

export class AreaList {
  readonly element: HTMLElement
  private shown: number[] = []
  private order: Order = "size"
  private body: HTMLElement
  private space: HTMLElement
  private status: HTMLElement
  private input: HTMLInputElement
  private more: HTMLElement
  private rows = new Map<number, HTMLElement>()
  private draw = framed(() => this.render())

  constructor(private data: () => ProcessData, private state: State) {
    this.input = h("input", { type: "search", id: "filter", placeholder: "filter: name, file, owners", "aria-label": "Filter the arrays", "onkeydown": (event: KeyboardEvent) => this.key(event) })
    this.input.addEventListener("input", () => state.set({ filter: this.input.value }))
    const order = h("select", { "aria-label": "Order of the arrays" }, ...(["size", "remote", "moved", "name"] as Order[]).map(one => h("option", { value: one }, one === "remote" ? "by remote touches" : `by ${one}`)))
    order.addEventListener("change", () => { this.order = order.value as Order; this.refill() })
    this.status = h("span", { class: "dim", role: "status" })
    this.space = h("div", { class: "space" })
    this.body = h("div", { class: "areas", role: "listbox", tabindex: 0, id: "areas", "aria-label": "Arrays and other areas of memory", onkeydown: (event: KeyboardEvent) => this.key(event) }, this.space)
    // Scroll events come once a frame, before it is painted.
    this.body.addEventListener("scroll", () => this.render(), { passive: true })
    this.more = h("p", { class: "only-print dim" })
    this.element = h("div", { class: "area-list" }, h("div", { class: "tools" }, this.input, order, this.status),
      h("div", { class: "area-head", "aria-hidden": "true" }, h("span", {}, "array"), h("span", { class: "right" }, "size"), h("span", { class: "strip" }, "found"), h("span", { class: "strip" }, "at the end"), h("span", { class: "right" }, "remote")),
      this.body, this.more)
    onResize(this.body, this.draw)
    onTheme(() => { this.forget(); this.draw() })
    addEventListener("beforeprint", () => { this.printing = true; this.render() })
    addEventListener("afterprint", () => { this.printing = false; this.draw() })
  }

  private printing = false

  focusFilter(): void { this.input.focus() }

  /** The rows anew: another process, another filter, another node. */
  refill(): void {
    const data = this.data(), { filter, node } = this.state.now
    if (this.input.value !== filter) this.input.value = filter
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
    this.shown = data.json.areas.map((_, result) => result).filter(result => {
      const area = data.json.areas[result]
      if (node !== null && !(area.after ?? area.before)?.pages[node]) return false
      if (!words.length) return true
      const text = `${area.title} ${area.name} ${area.source?.file ?? ""} ${area.owners?.distribution ?? ""} ${area.kind}`.toLowerCase()
      return words.every(word => text.includes(word))
    }).sort(ORDERS[this.order](data))
    const all = data.json.areas.length
    this.status.textContent = this.shown.length === all ? `${count(all)} ${all === 1 ? "area" : "areas"}` : `${count(this.shown.length)} of ${count(all)} areas`
    this.space.style.height = `${this.shown.length * ROW}px`
    this.body.style.setProperty("--rows", String(Math.max(1, this.shown.length)))
    this.forget()
    this.draw()
  }

  /** Another area is selected: to be seen. */
  reveal(): void {
    const at = this.shown.indexOf(this.state.now.area ?? -1)
    if (at >= 0) {
      const top = at * ROW
      if (top < this.body.scrollTop) this.body.scrollTop = top
      else if (top + ROW > this.body.scrollTop + this.body.clientHeight) this.body.scrollTop = top + ROW - this.body.clientHeight
    }
    this.draw()
  }

  move(by: number): void {
    if (!this.shown.length) return
    const at = this.shown.indexOf(this.state.now.area ?? -1)
    this.state.set({ area: this.shown[Math.min(this.shown.length - 1, Math.max(0, at + by))] })
  }

  get first(): number | null { return this.shown[0] ?? null }

  private key(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.body.clientHeight / ROW) - 1)
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }
    if (event.target !== this.input) Object.assign(steps, { Home: -Infinity, End: Infinity })
    if (event.key in steps) {
      event.preventDefault()
      this.move(Number.isFinite(steps[event.key]) ? steps[event.key] : Math.sign(steps[event.key]) * this.shown.length)
    }
  }

  private forget(): void {
    for (const row of this.rows.values()) row.remove()
    this.rows.clear()
  }

  private render(): void {
    const top = this.printing ? 0 : this.body.scrollTop
    const from = Math.max(0, Math.floor(top / ROW) - 3)
    const to = this.printing ? Math.min(this.shown.length, PRINTED) : Math.min(this.shown.length, Math.ceil((top + Math.max(ROW, this.body.clientHeight)) / ROW) + 3)
    for (const [at, row] of this.rows) if (at < from || at >= to) { row.remove(); this.rows.delete(at) }
    for (let at = from; at < to; at++) {
      let row = this.rows.get(at)
      if (!row) {
        row = this.row(at)
        this.rows.set(at, row)
        this.space.append(row)
      }
      const selected = this.shown[at] === this.state.now.area
      row.setAttribute("aria-selected", String(selected))
      if (selected) this.body.setAttribute("aria-activedescendant", row.id)
    }
    if (this.printing) this.space.style.height = `${(to - from) * ROW}px`
    else this.space.style.height = `${this.shown.length * ROW}px`
    const left = this.shown.length - PRINTED
    this.more.textContent = left > 0 ? `and ${count(left)} more areas` : ""
  }

  private row(at: number): HTMLElement {
    const data = this.data(), result = this.shown[at], area = data.json.areas[result]
    const remote = area.remote_fraction
    const row = h("div", { class: "area", role: "option", id: `area-${result}`, "aria-posinset": at + 1, "aria-setsize": this.shown.length, style: `top:${at * ROW}px`, title: area.title, onclick: () => this.state.set({ area: result }) },
      h("span", { class: "name" }, area.title, area.count > 1 && h("span", { class: "dim" }, ` × ${count(area.count)}`)),
      h("span", { class: "right dim" }, size(area.live_bytes)),
      strip(data, area, result, FOUND), strip(data, area, result, AT_END),
      h("span", { class: "right" }, remoteCell(remote)))
    return row
  }
}

export function remoteCell(remote: { before: number | null; after: number | null }): HTMLElement {
  if (remote.before === null || remote.after === null) return h("span", { class: "dim", title: "too few samples" }, "–")
  const before = percent(remote.before), after = percent(remote.after)
  if (before === after) return h("span", {}, after)
  return h("span", {}, h("span", { class: "dim" }, `${before.replace(" %", "")} → `), after)
}

/** A small map; where addresses are not known, the shares of the nodes one behind the other would lie: nothing is drawn
 *  but the shares as bars of their lanes. */
function strip(data: ProcessData, area: Area, result: number, when: number): HTMLElement {
  const maps = data.mapsOf(result, when)
  const words = placementWords(when === FOUND ? area.before : area.after, data.nodeIndex)
  const canvas = h("canvas", { class: "strip", role: "img", "aria-label": `${when === FOUND ? "found" : "at the end"}: ${words}`, title: words })
  if (maps.length) {
    const line = lineOf(maps)
    drawPages(canvas, line, { from: 0, to: line.bytes }, data.nodeCount, 72, 22, null)
  } else {
    const pages = (when === FOUND ? area.before : area.after)?.pages
    const context = canvas.getContext("2d")
    canvas.width = 144; canvas.height = 44; canvas.style.height = "22px"
    if (pages && context) {
      const all = pages.reduce((sum, one) => sum + one, 0) || 1
      context.fillStyle = colour("no-node")
      pages.forEach((held, node) => context.fillRect(0, (node * 44) / pages.length + 1, (144 * held) / all, 44 / pages.length - 2))
    }
  }
  return canvas
}

export function placementWords(placement: { pages: number[]; absent: number } | null, nodeIndex: number[]): string {
  if (!placement) return "not looked at"
  const all = placement.pages.reduce((sum, one) => sum + one, 0)
  if (!all) return "not touched"
  const parts = placement.pages.map((held, node) => [held / all, nodeIndex[node]] as const).filter(([share]) => share >= 0.005)
  if (parts.length > 8) return `on ${parts.length} nodes, ${percent(Math.min(...parts.map(one => one[0])))} to ${percent(Math.max(...parts.map(one => one[0])))} each`
  return parts.map(([share, index]) => `node ${index} ${percent(share, 0)}`).join(", ")
}

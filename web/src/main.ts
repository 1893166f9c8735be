// The page: header, selection, six views, keys.

import "uplot/dist/uPlot.min.css"
import "./style.css"

import type { Data } from "./data"
import { load } from "./data"
import { base, count, fill, h } from "./dom"
import { State } from "./state"
import type { Theme } from "./theme"
import { isDark, setTheme } from "./theme"
import { machineView } from "./views/machine"
import { matrixView } from "./views/matrix"
import { pagesView } from "./views/pages"
import { sourceView } from "./views/source"
import { timelineView } from "./views/timeline"
import { verdictView } from "./views/verdict"

const SECTIONS: [string, string, string][] = [
  ["verdict", "Verdict", "What did remote memory cost, and what is to be done?"],
  ["pages", "Pages", "Where do the pages of each array lie, and who uses them?"],
  ["time", "Time", "How did the run go, iteration by iteration?"],
  ["matrix", "Matrix", "Which node uses the memory of which?"],
  ["source", "Source", "Which lines of the program make remote memory?"],
  ["machine", "Machine", "What did it run on, and what could homing use?"],
]

const KEYS: [string, string][] = [
  ["1 – 6", "go to a view"], ["j, k", "next and previous array"], ["/", "filter the arrays"], ["m", "to the page map"], ["+ − 0", "zoom the page map"], ["← →", "pan the page map"],
  ["[ ]", "previous and next iteration"], ["Esc", "drop the selection"], ["d", "light or dark"], ["p", "print"], ["?", "these keys"],
]

function start(data: Data): void {
  const app = document.getElementById("app")!
  if (!data.processes.length) {
    const command = data.run.command
    fill(app, h("main", { class: "empty" }, h("h1", {}, command?.length ? base(command[0]) : "homing"), h("p", {}, data.run.aside ? `Nothing was done: ${data.run.aside}.` : "No process left a record."), ...data.run.notes.map(note => h("p", { class: "dim" }, note))))
    document.documentElement.dataset.ready = "true"
    return
  }
  const state = new State({ processes: data.processes.length, areas: at => data.processes[at]?.json.areas.length ?? 0 })
  const process = () => data.processes[state.now.process]

  const verdict = verdictView(data, process, state)
  const pages = pagesView(process, state)
  const time = timelineView(data, process, state)
  const matrix = matrixView(data, process, state)
  const source = sourceView(data, process, state)
  const machine = machineView(process)
  const views: Record<string, HTMLElement> = { verdict: verdict.element, pages: pages.element, time: time.element, matrix: matrix.element, source: source.element, machine: machine.element }

  const record = process().json.record
  const title = h("h1", {}, base(record.program))
  const about = h("p", { class: "about dim" })
  const theme = h("button", { type: "button", id: "theme", onclick: () => { setTheme(isDark() ? "light" : "dark" as Theme); label() } })
  const label = (): void => { theme.textContent = isDark() ? "light" : "dark" }
  const help = h("dialog", { id: "keys", "aria-label": "Keys" }, h("h2", {}, "Keys"), h("dl", { class: "keys" }, KEYS.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)))), h("form", { method: "dialog" }, h("button", {}, "close")))
  const chips = h("div", { class: "chips", "aria-live": "polite" })
  const processes = data.processes.length > 1 && h("select", { "aria-label": "Process", id: "process" }, data.processes.map((one, at) => h("option", { value: at }, `${one.json.record.rank !== null ? `rank ${one.json.record.rank}` : `process ${one.json.record.pid}`}`)))
  if (processes) processes.addEventListener("change", () => state.set({ process: Number(processes.value) }))

  fill(app,
    h("a", { class: "skip", href: "#verdict" }, "to the report"),
    h("header", {}, h("div", { class: "top" }, h("div", { class: "who" }, title, about),
      h("nav", { "aria-label": "Views" }, SECTIONS.map(([id, name], at) => h("a", { href: `#${id}`, "data-view": id, onclick: (event: Event) => { event.preventDefault(); go(id) } }, h("kbd", { "aria-hidden": "true" }, at + 1), name))),
      h("div", { class: "buttons" }, processes, theme, h("button", { type: "button", "aria-label": "Keys", onclick: () => help.showModal() }, "?"))), chips),
    h("main", {}, SECTIONS.map(([id, name, question]) => h("section", { id, "aria-labelledby": `${id}-title` }, h("p", { class: "kicker" }, name), h("h2", { id: `${id}-title`, tabindex: -1 }, question), views[id]))),
    h("footer", { class: "dim" }, h("p", {}, `homing ${data.run.homing}. The numbers of this page are those of homing report --json.`)),
    help)

  const go = (id: string): void => {
    document.getElementById(id)!.scrollIntoView()
    document.getElementById(`${id}-title`)!.focus({ preventScroll: true })
  }

  const showChips = (): void => {
    const { area, iteration, node } = state.now, one = process()
    const chip = (text: string, drop: () => void): HTMLElement => h("span", { class: "chip" }, text, h("button", { type: "button", "aria-label": `drop ${text}`, onclick: drop }, "×"))
    fill(chips,
      area !== null && chip(one.json.areas[area].title, () => state.set({ area: null })),
      node !== null && chip(`node ${one.nodeIndex[node]}`, () => state.set({ node: null })),
      iteration !== null && chip(`iteration ${count(iteration)}`, () => state.set({ iteration: null })))
  }

  const update = (changed: Set<string> | null): void => {
    const one = process()
    if (!changed || changed.has("process")) {
      const own = one.json.record
      title.textContent = base(own.program)
      about.textContent = [`${own.rank !== null ? `rank ${own.rank}, ` : ""}process ${own.pid} on ${own.host}`, `${one.json.nodes.length} ${one.json.nodes.length === 1 ? "node" : "nodes"}`, `${one.json.threads.length} threads`, own.complete ? "" : "did not end in order", own.truncated ? "the record's end is missing" : ""].filter(Boolean).join(" · ")
      if (processes) processes.value = String(state.now.process)
      verdict.update()
    }
    showChips()
    pages.update(changed)
    time.update(changed)
    matrix.update(changed)
    source.update(changed)
    machine.update(changed)
  }
  state.listen(update)
  label()

  // The first thing to look at is what contributes most remote touches.
  const areas = process().json.areas
  if (state.now.area === null && areas.length) {
    const weight = (at: number): number => (areas[at].remote_fraction.before ?? 0) * process().views.areas.traffic[at]
    let best = 0
    areas.forEach((_, at) => { if (weight(at) > weight(best)) best = at })
    state.now.area = best
  }
  update(null)

  document.addEventListener("click", event => {
    const link = (event.target as Element).closest<HTMLElement>("[data-line]")
    if (!link) return
    event.preventDefault()
    source.show(link.dataset.line!)
    go("source")
  })

  addEventListener("keydown", event => {
    const target = event.target as HTMLElement
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) {
      if (event.key === "Escape") target.blur()
      return
    }
    const step = (by: number): void => {
      const rows = process().json.iterations.rows.filter(row => row.basis !== "guess") // parts of one
      if (!rows.length) return
      const at = rows.findIndex(row => row.number === state.now.iteration)
      state.set({ iteration: rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by))].number })
    }
    const keys: Record<string, () => void> = {
      j: () => pages.list.move(1), k: () => pages.list.move(-1), "/": () => { go("pages"); pages.list.focusFilter() }, m: () => { go("pages"); document.getElementById("map")?.focus({ preventScroll: true }) },
      "[": () => step(-1), "]": () => step(1), Escape: () => state.set({ node: null, iteration: null, filter: "" }), d: () => theme.click(), p: () => print(), "?": () => help.showModal(),
    }
    SECTIONS.forEach(([id], at) => { keys[String(at + 1)] = () => go(id) })
    if (event.key in keys) { event.preventDefault(); keys[event.key]() }
  })

  const seen = new IntersectionObserver(entries => {
    for (const entry of entries) document.querySelector(`nav a[data-view="${entry.target.id}"]`)?.classList.toggle("seen", entry.isIntersecting)
  }, { rootMargin: "-30% 0px -50% 0px" })
  for (const [id] of SECTIONS) seen.observe(document.getElementById(id)!)
  document.documentElement.dataset.ready = "true"
}

load().then(start, error => {
  document.getElementById("app")!.textContent = `This page could not be read: ${error instanceof Error ? error.message : error}. A browser of 2023 or newer is needed; the same numbers: homing report --json FILE.`
})

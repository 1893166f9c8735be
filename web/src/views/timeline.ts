// How did the run go, iteration by iteration?

import uPlot from "uplot"
import type { Data, Iteration, ProcessData } from "../data"
import { remoteShare } from "../data"
import { count, fill, h, missing, onResize, percent, seconds } from "../dom"
import { type Rests, rests } from "../rests"
import type { State } from "../state"
import { colour, onTheme } from "../theme"

type Row = number | null
const STATES: Record<string, string> = { searching: "searching for the iteration", observing: "observing", settled: "at rest" }

export function timelineView(data: Data, process: () => ProcessData, state: State): { element: HTMLElement; update: (changed: Set<string> | null) => void } {
  const charts = h("div", { class: "charts" })
  const note = h("div", {})
  const regions = h("div", {})
  const element = h("div", { class: "timeline" }, charts, note, regions)
  let plots: uPlot[] = []
  onResize(charts, () => { for (const plot of plots) plot.setSize({ width: charts.clientWidth, height: plot.height }) })
  onTheme(() => draw())

  const draw = (): void => {
    for (const plot of plots) plot.destroy()
    plots = []
    const one = process(), rows = one.json.iterations.rows.filter(row => row.basis !== "guess") // which are parts of one
    fill(regions, regionTable(one), phaseTable(data))
    if (!rows.length && !one.json.iterations.count) {
      fill(charts, missing("No outer iteration was found: no parallel region came again (homing_iteration() or homing.h marks them)."))
      fill(note)
      return
    }
    const table = columns(one, data, state.now.area)
    const about = state.now.area !== null ? `, of ${one.json.areas[state.now.area]?.title ?? ""}` : ""
    const names = ["time", "remote", "moved"]
    const hosts = names.map(name => h("div", { class: "chart", id: `chart-${name}` }))
    const titles = ["Time of an iteration", "Remote share of an iteration", `Pages moved${about}`]
    fill(charts, ...hosts.map((host, at) => [h("h3", {}, titles[at]), at === 1 && !table.remote.some(value => value !== null) && !table.counted.some(value => value !== null) ? missing(one.views.missing.references ?? "No touches of single iterations were sampled.") : host]).flat())
    const sync = uPlot.sync("iterations")
    sync.plots.splice(0)
    const line = { stroke: colour("ink-dim"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 }, font: `11px ${colour("sans")}` }
    const make = (host: HTMLElement, series: uPlot.Series[], values: Row[][], format: (value: number) => string, height: number, range: uPlot.Range.MinMax | undefined): void => {
      if (!host.isConnected) return
      const plot = new uPlot({
        width: charts.clientWidth || 600, height, padding: [8, 8, 0, 0],
        cursor: { sync: { key: sync.key, setSeries: false }, drag: { x: true, y: false }, points: { size: 6 } },
        legend: { live: true },
        scales: { x: { time: false }, y: range ? { range } : { range: (_self, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
        axes: [{ ...line, size: 28, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6], values: (_self, ticks) => ticks.map(tick => (Number.isInteger(tick) ? count(tick) : "")) }, { ...line, size: 64, values: (_self, ticks) => ticks.map(format) }],
        series: [{ label: "iteration", value: (_self, value) => (value === null ? "–" : count(value)) }, ...series.map(one => ({ ...one, value: (_self: uPlot, value: number | null) => (value === null || value === undefined ? "–" : format(value)) }))],
        hooks: { draw: [plot => marks(plot, rows)], ready: [plot => { plot.over.addEventListener("click", () => { const at = plot.cursor.idx; if (at !== null && at !== undefined && !dragged(plot)) state.set({ iteration: table.number[at] }) }) }] },
      }, [table.number, ...values] as uPlot.AlignedData, host)
      plots.push(plot)
      sync.sub(plot)
    }
    const strong = colour("accent"), ink = colour("ink-dim"), second = colour("accent-2")
    const dots = rows.length < 200
    make(hosts[0], [
      { label: "seconds", stroke: strong, width: 1.5, points: { show: dots, size: 5 } },
      { label: "mean of those at rest", stroke: ink, width: 1.5, dash: [2, 3], points: { show: false }, spanGaps: false },
      { label: "of it homing", stroke: second, width: 1, points: { show: false }, fill: colour("accent-2-fill") },
    ], [table.seconds, table.rest, table.own], seconds, 170, undefined)
    make(hosts[1], [
      { label: "sampled", stroke: strong, width: 1.5, points: { show: true, size: 5 }, spanGaps: false },
      { label: "counted", stroke: second, width: 1.5, points: { show: dots, size: 5 } },
    ], [table.remote, table.counted], value => percent(value, 0), 150, [0, 1])
    const bars = uPlot.paths.bars!({ size: [0.7, 40, 1] })
    make(hosts[2], [{ label: "pages", stroke: strong, fill: strong, paths: bars, points: { show: false } }], [table.moved], count, 110, undefined)
    const settled = one.json.iterations.settled_at
    const resting = one.views.iterations_seen - rows.length
    const having = !rows.length ? "No iteration has" : rows.length === 1 ? "1 iteration has" : `${count(rows.length)} iterations have`
    fill(note, h("p", { class: "dim" }, `${having} a row in the record`,
      resting > 0 ? `; ${count(resting)} ran while homing was at rest, of which only the mean is known (dotted${restsOf(one).atMost ? ", at most: it has the end of the run in it" : ""}).` : ".",
      settled !== null ? ` Settled at iteration ${count(settled)}.` : " The placement was not settled when the run ended.",
      " Drag to zoom, double-click for all, click to choose an iteration."))
  }
  const update = (changed: Set<string> | null): void => {
    if (!changed || changed.has("process") || changed.has("area")) draw()
    else if (changed.has("iteration")) for (const plot of plots) plot.redraw(false)
  }

  function marks(plot: uPlot, rows: Iteration[]): void {
    const { ctx, bbox } = plot
    const ratio = devicePixelRatio || 1
    ctx.save()
    ctx.font = `${10 * ratio}px ${colour("sans")}`
    ctx.fillStyle = ctx.strokeStyle = colour("ink-dim")
    ctx.textAlign = "left"
    ctx.textBaseline = "alphabetic"
    // Where homing's state changes.
    let last = "", end = -Infinity
    for (const row of rows) {
      if (row.state === last) continue
      last = row.state
      const x = plot.valToPos(row.number, "x", true)
      if (x < bbox.left || x > bbox.left + bbox.width) continue
      ctx.globalAlpha = 0.5
      ctx.beginPath(); ctx.setLineDash([1 * ratio, 3 * ratio]); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke()
      ctx.globalAlpha = 1
      const text = STATES[row.state] ?? row.state
      if (plot === plots[0] && x > end && x + ctx.measureText(text).width < bbox.left + bbox.width) {
        ctx.fillText(text, x + 4 * ratio, bbox.top + 10 * ratio)
        end = x + ctx.measureText(text).width + 8 * ratio
      }
    }
    const chosen = state.now.iteration
    if (chosen !== null) {
      const x = plot.valToPos(chosen, "x", true)
      ctx.setLineDash([]); ctx.lineWidth = 2 * ratio; ctx.strokeStyle = colour("ink")
      ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke()
    }
    ctx.restore()
  }
  return { element, update }
}

function dragged(plot: uPlot): boolean { return plot.select.width > 3 }

function restsOf(one: ProcessData): Rests { return rests(one.json.iterations.rows, one.views.iterations_seen, one.json.seconds.run) }

interface Columns { number: number[]; seconds: Row[]; rest: Row[]; own: Row[]; remote: Row[]; counted: Row[]; moved: Row[] }

/** One line for each iteration that has a row, was sampled or counted, or begins or ends a rest. */
function columns(one: ProcessData, data: Data, area: number | null): Columns {
  const rows = new Map(one.json.iterations.rows.filter(row => row.basis !== "guess").map(row => [row.number, row]))
  const sampled = new Map(Array.from(one.referenceIterations, (number, at) => [number, remoteShare(one.referencesIn(at), one.nodeCount)]))
  const counts = data.run.processes.length === 1 ? data.run.counts?.iterations ?? [] : []
  const counted = new Map(counts.map(row => [row.number, row.total_misses ? row.remote_fraction : null]))
  const moved = new Map<number, number>()
  for (const move of one.json.moves) {
    if (area !== null && (move.area === null || one.resultOf.get(move.area) !== area)) continue
    moved.set(move.iteration, (moved.get(move.iteration) ?? 0) + move.moved)
  }
  const rest = restsOf(one).means
  const number = [...new Set([...rows.keys(), ...sampled.keys(), ...counted.keys(), ...moved.keys(), ...rest.keys()])].sort((a, b) => a - b)
  return {
    number,
    seconds: number.map(at => rows.get(at)?.seconds ?? null),
    rest: number.map(at => rest.get(at) ?? null),
    own: number.map(at => rows.get(at)?.overhead_seconds ?? null),
    remote: number.map(at => sampled.get(at) ?? null),
    counted: number.map(at => counted.get(at) ?? null),
    moved: number.map(at => moved.get(at) ?? (rows.has(at) ? 0 : null)),
  }
}

function regionTable(one: ProcessData): HTMLElement | false {
  const regions = [...one.views.regions].sort((a, b) => b.seconds - a.seconds)
  if (!regions.length) return false
  const all = regions.reduce((sum, region) => sum + region.seconds, 0) || 1
  const shown = regions.slice(0, 12)
  return h("details", { open: true }, h("summary", {}, `Parallel regions, ${count(regions.length)}`),
    h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "region"), h("th", { scope: "col", class: "right" }, "runs timed"), h("th", { scope: "col", class: "right" }, "seconds"), h("th", { scope: "col" }, "share"))),
      h("tbody", {}, shown.map(region => h("tr", {}, h("td", { class: "mono" }, region.name), h("td", { class: "right" }, count(region.count)), h("td", { class: "right" }, seconds(region.seconds)),
        h("td", { class: "share" }, h("span", { class: "bar", style: `width:${(100 * region.seconds) / all}%` }), h("span", { class: "dim" }, percent(region.seconds / all, 0))))))),
    regions.length > shown.length && h("p", { class: "dim" }, `and ${count(regions.length - shown.length)} more`),
    one.views.iterations_seen > one.json.iterations.rows.filter(row => row.basis !== "guess").length && h("p", { class: "dim" }, "While homing was at rest, regions were not timed."))
}

function phaseTable(data: Data): HTMLElement | false {
  const phases = data.run.counts?.phases ?? []
  if (phases.length < 2) return false
  return h("details", { open: true }, h("summary", {}, "Phases that the program marked, counted"),
    h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "phase"), h("th", { scope: "col", class: "right" }, "cache misses"), h("th", { scope: "col" }, "remote"))),
      h("tbody", {}, phases.map(phase => h("tr", {}, h("td", {}, phase.phase), h("td", { class: "right" }, count(phase.total_misses)),
        h("td", {}, h("span", { class: "bar", style: `width:${100 * phase.remote_fraction}%` }), h("span", { class: "dim" }, percent(phase.remote_fraction))))))))
}

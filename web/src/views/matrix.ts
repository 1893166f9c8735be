// Which node uses the memory of which?

import type { Data, Figures, Matrix, ProcessData } from "../data"
import { remoteShare } from "../data"
import { count, fill, h, missing, percent } from "../dom"
import type { State } from "../state"

export function matrixView(data: Data, process: () => ProcessData, state: State): { element: HTMLElement; update: (changed: Set<string> | null) => void } {
  const select = h("select", { id: "scope" })
  const body = h("div", {})
  const element = h("div", { class: "matrix" }, h("div", { class: "tools" }, h("label", { for: "scope" }, "of "), select), body)
  let scopes: { key: string; matrix: Matrix }[] = []
  select.addEventListener("change", () => {
    const area = /^(?:sampled|counted)-area/.test(select.value)
    if (!area && state.now.area !== null && select.value !== "") draw()
    else draw()
  })

  const collect = (): void => {
    const one = process(), size = one.nodeCount
    const { area, iteration } = state.now
    const counts = data.run.processes.length === 1 ? data.run.counts : null
    const sampled = one.views.by_access ? "sampled accesses" : "sampled touches, before the moves of their iteration"
    scopes = []
    const put = (key: string, label: string, unit: string, cells: ArrayLike<number> | null | undefined): void => { if (cells) scopes.push({ key, matrix: { label, unit, cells, size } }) }
    const put2 = (key: string, label: string, figures: Figures | undefined): void => put(key, label, "cache misses, counted", figures?.misses.flat())
    if (area !== null) {
      const title = one.json.areas[area]?.title
      put2("counted-area", `${title}: counted`, counts?.areas?.find(entry => one.resultOf.get(entry.id) === area))
      put("sampled-area", `${title}: sampled`, sampled, one.referencesOf(area))
    }
    if (iteration !== null) {
      put2("counted-iteration", `iteration ${iteration}: counted`, counts?.iterations?.find(entry => entry.number === iteration))
      const at = one.referenceIterations.indexOf(iteration)
      put("sampled-iteration", `iteration ${iteration}: sampled`, sampled, at < 0 ? null : one.referencesIn(at))
    }
    put2("counted-run", "the run: counted", counts?.run)
    put("sampled-run", "the run: sampled", sampled, one.allReferences)
    for (const phase of counts?.phases ?? []) put2(`phase-${phase.phase}`, `phase ${phase.phase}: counted`, phase)
    for (const [at, region] of (counts?.regions ?? []).slice(0, 200).entries()) put2(`region-${at}`, `region ${region.symbol ?? region.offset.toString(16)}: counted`, region)
    for (const entry of one.views.region_touches) {
      const region = one.views.regions.find(candidate => candidate.id === entry.region)
      put(`touches-${entry.region}`, `region ${region?.name ?? entry.region}: touches, pages as found`, "kept touches", entry.matrix.flat())
    }
  }

  const draw = (): void => {
    const one = process(), chosen = scopes.find(scope => scope.key === select.value) ?? scopes[0]
    if (!chosen) {
      fill(body, missing(one.views.missing.references ?? "No references were sampled."))
      return
    }
    const { cells, size, unit, label } = chosen.matrix
    const all = Array.from(cells).reduce((sum, value) => sum + value, 0)
    const remote = remoteShare(cells, size)
    const largest = Math.max(...Array.from(cells), 1e-9)
    const whole = unit.includes("counted")
    const head = h("tr", {}, h("th", { scope: "col", class: "corner" }, "thread on ↓ page on →"), ...one.nodeIndex.map((index, position) => h("th", { scope: "col" }, h("button", { class: "link", type: "button", "aria-pressed": String(state.now.node === position), onclick: () => state.set({ node: state.now.node === position ? null : position }) }, size > 16 ? index : `node ${index}`))))
    const rows = one.nodeIndex.map((index, from) => h("tr", {}, h("th", { scope: "row" }, size > 16 ? index : `node ${index}`), ...one.nodeIndex.map((_, to) => {
      const value = cells[from * size + to]
      const share = all > 0 ? value / all : 0
      return h("td", { class: `${from === to ? "local" : ""} ${state.now.node === to ? "chosen" : ""}`, style: `--weight:${(value / largest).toFixed(3)}`, title: `threads on node ${index}, pages on node ${one.nodeIndex[to]}: ${whole ? count(value) : value.toFixed(1)} ${unit}` }, size > 16 ? "" : share ? percent(share, share < 0.0995 ? 1 : 0).replace(" %", "") : "·")
    })))
    const served = one.nodeIndex.map((_, to) => { let sum = 0; for (let from = 0; from < size; from++) sum += cells[from * size + to]; return sum })
    const most = served.indexOf(Math.max(...served))
    fill(body, h("p", { id: "matrix-words" }, remote === null ? "Nothing was seen here." : `${percent(remote)} remote (off the diagonal); node ${one.nodeIndex[most]} serves ${percent(served[most] / (all || 1), 0)}.`),
      h("div", { class: "scrolled", tabindex: 0, role: "region", "aria-label": "Matrix" }, h("table", { class: `cells${size > 16 ? " many" : ""}` }, h("caption", { class: "dim" }, `${label}; per cent of ${whole ? count(all) : Number(all.toPrecision(6)).toLocaleString("en-US")} ${unit}`), h("thead", {}, head), h("tbody", {}, rows))))
  }

  const update = (changed: Set<string> | null): void => {
    if (changed && !["process", "area", "iteration", "node"].some(name => changed.has(name))) return
    const before = select.value
    collect()
    fill(select, ...scopes.map(scope => h("option", { value: scope.key }, scope.matrix.label)))
    // What was just chosen elsewhere is what is looked at.
    const wanted = changed?.has("iteration") && state.now.iteration !== null ? "iteration" : changed?.has("area") && state.now.area !== null ? "area" : before
    const found = scopes.find(scope => scope.key.endsWith(wanted)) ?? scopes.find(scope => scope.key === before) ?? scopes.find(scope => scope.key.endsWith("run")) ?? scopes[0]
    if (found) select.value = found.key
    select.disabled = scopes.length < 2
    draw()
  }
  return { element, update }
}

// Which lines of the program make remote memory?

import type { Data, ProcessData } from "../data"
import { base, count, fill, h, missing, percent, size } from "../dom"
import type { State } from "../state"

interface Entry { key: string; file: string; line: number; what: string; figure: string; share: number; areas: number[]; function: string }

export function sourceView(data: Data, process: () => ProcessData, state: State): { element: HTMLElement; update: (changed: Set<string> | null) => void; show: (key: string) => void } {
  const touched = h("div", {}), allocated = h("div", {}), touchedFirst = h("div", {}), text = h("div", { class: "text" })
  const element = h("div", { class: "source" }, h("div", { class: "lists" }, h("h3", {}, "Lines with remote touches"), touched, h("h3", {}, "Where arrays come from"), allocated, h("h3", {}, "Where arrays are touched first"), touchedFirst), text)
  let chosen: string | null = null
  let lines: Entry[] = [], sites: Entry[] = [], firsts: Entry[] = []

  const collect = (): void => {
    const one = process(), counts = data.run.processes.length === 1 ? data.run.counts?.lines ?? [] : []
    const all = counts.reduce((sum, line) => sum + line.remote_misses, 0) || 1
    lines = counts.filter(line => line.remote_misses > 0).sort((a, b) => b.remote_misses - a.remote_misses).map(line => ({
      key: `${line.file}:${line.line ?? 0}`, file: line.file, line: line.line ?? 0, function: line.function ?? "", areas: [],
      what: "counted", figure: `${count(line.remote_misses)} remote misses, ${percent(line.remote_fraction)} of its own`, share: line.remote_misses / all,
    }))
    if (!lines.length) {
      const sum = one.views.lines.reduce((total, line) => total + line.found[1], 0) || 1
      lines = [...one.views.lines].sort((a, b) => b.found[1] - a.found[1]).map(line => ({
        key: `${line.file}:${line.line}`, file: line.file, line: line.line, function: line.function, areas: [], what: "sampled", share: line.found[1] / sum,
        figure: [`${count(line.touches)} touches`, line.found[0] && `remote ${percent(line.found[1] / line.found[0], 0)} as found`, line.end[0] && `${percent(line.end[1] / line.end[0], 0)} at the end`].filter(Boolean).join(", "),
      }))
    }
    const by = new Map<string, Entry>()
    const weights = one.views.areas.traffic.map((traffic, at) => traffic * (one.json.areas[at].remote_fraction.before ?? 0))
    const weight = weights.reduce((sum, value) => sum + value, 0) || 1
    one.json.areas.forEach((area, at) => {
      if (!area.source?.file || !area.source.line) return
      const key = `${area.source.file}:${area.source.line}`
      const entry = by.get(key) ?? { key, file: area.source.file, line: area.source.line, function: area.source.function ?? "", what: "allocated", figure: "", share: 0, areas: [] }
      entry.areas.push(at)
      entry.share += weights[at] / weight
      by.set(key, entry)
    })
    sites = [...by.values()].sort((a, b) => b.share - a.share || bytes(one, b) - bytes(one, a))
    for (const site of sites) site.figure = `${size(bytes(one, site))}${site.areas.length > 1 ? `, ${site.areas.length} areas` : ""}`
  }

  const collectFirsts = (): void => {
    const one = process(), by = new Map<string, Entry & { threads: Set<number> }>()
    const all = one.json.areas.reduce((sum, area) => sum + (area.first_touch.length ? area.live_bytes : 0), 0) || 1
    one.json.areas.forEach((area, at) => area.first_touch.forEach(touch => {
      const key = `${touch.file ?? ""}:${touch.line ?? 0}:${touch.function ?? ""}`
      const entry = by.get(key) ?? { key, file: touch.file ?? "", line: touch.line ?? 0, function: touch.function ?? "", what: "touched first", figure: "", share: 0, areas: [], threads: new Set<number>() }
      entry.areas.push(at)
      entry.share += touch.share * area.live_bytes / all
      touch.threads.forEach(thread => entry.threads.add(thread))
      by.set(key, entry)
    }))
    firsts = [...by.values()].sort((a, b) => b.share - a.share).map(entry => ({ ...entry, figure: `${entry.threads.size === 1 ? "one thread" : `${entry.threads.size} threads`}; ${entry.areas.slice(0, 3).map(at => one.json.areas[at].variable ?? one.json.areas[at].title).join(", ")}${entry.areas.length > 3 ? ` and ${entry.areas.length - 3} more` : ""}` }))
  }

  const table = (entries: Entry[], what: string, of = "of all remote"): HTMLElement => {
    const shown = entries.slice(0, 100)
    return h("div", { class: "scrolled short", tabindex: 0, role: "region", "aria-label": what }, h("table", { class: "plain lines" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "line"), h("th", { scope: "col" }, of), h("th", { scope: "col" }, ""))),
      h("tbody", {}, shown.map(entry => h("tr", { "aria-current": entry.key === chosen ? "true" : null },
        h("td", { class: "mono" }, h("button", { class: "link", type: "button", onclick: () => choose(entry) }, entry.line ? `${base(entry.file)}:${entry.line}` : `${base(entry.file)} ${entry.function}`), entry.line && entry.function ? h("span", { class: "dim" }, ` ${entry.function}`) : ""),
        h("td", { class: "share" }, h("span", { class: "bar", style: `width:${100 * entry.share}%` }), h("span", { class: "dim" }, percent(entry.share))),
        h("td", { class: "dim" }, entry.figure))))),
      entries.length > shown.length && h("p", { class: "dim" }, `and ${count(entries.length - shown.length)} more`))
  }

  const choose = (entry: Entry): void => {
    chosen = entry.key
    if (entry.areas.length && !entry.areas.includes(state.now.area ?? -1)) state.set({ area: entry.areas[0] })
    draw()
  }

  const draw = (): void => {
    const one = process()
    fill(touched, lines.length ? table(lines, "Lines with remote touches") : missing(one.views.missing.lines ?? "No line has remote touches."))
    fill(allocated, sites.length ? table(sites, "Where arrays come from") : missing("No array has a source line: compile with -g."))
    fill(touchedFirst, firsts.length ? table(firsts, "Where arrays are touched first", "of memory") : missing(one.views.missing.first_touch ?? "No first touch was seen."))
    const entry = [...lines, ...sites, ...firsts].find(candidate => candidate.key === chosen) ?? lines.find(candidate => candidate.line) ?? sites[0]
    if (!entry || !entry.line) {
      fill(text)
      return
    }
    const known = data.text[entry.file]
    const area = state.now.area !== null ? one.json.areas[state.now.area] : null
    const marked = new Map(lines.filter(line => line.file === entry.file).map(line => [line.line, line]))
    fill(text, h("h3", { class: "mono" }, `${entry.file}:${entry.line}`),
      known ? h("pre", { tabindex: 0, "aria-label": `Text around line ${entry.line}` }, around(known, entry.line).map(([number, content]) => h("div", { class: number === entry.line ? "line here" : "line" },
        h("span", { class: "no" }, number), h("span", { class: "heat", style: `width:${marked.has(number) ? Math.max(2, 44 * marked.get(number)!.share) : 0}px`, title: marked.get(number)?.figure ?? "" }), content || " ")))
        : missing(`The text of ${base(entry.file)}: ${data.noText[entry.file] ?? "not read"}.`),
      area && area.callers.length > 0 && entry.areas.includes(state.now.area!) && h("ol", { class: "callers" }, area.callers.map(caller => h("li", { class: "mono" }, `called from ${caller.function ?? "?"}`, caller.file && caller.line ? h("button", { class: "link", type: "button", onclick: () => { chosen = `${caller.file}:${caller.line}`; showOnly(caller.file!, caller.line!) } }, `${base(caller.file)}:${caller.line}`) : ""))),
      entry.areas.length > 0 && h("p", {}, h("span", { class: "dim" }, "Arrays of this line: "), entry.areas.slice(0, 20).map(at => h("button", { class: "link", type: "button", onclick: () => { state.set({ area: at }); document.getElementById("pages")!.scrollIntoView() } }, one.json.areas[at].title))))
  }

  const showOnly = (file: string, line: number): void => {
    const known = data.text[file]
    fill(text, h("h3", { class: "mono" }, `${file}:${line}`), known ? h("pre", { tabindex: 0, "aria-label": `Text around line ${line}` }, around(known, line).map(([number, content]) => h("div", { class: number === line ? "line here" : "line" }, h("span", { class: "no" }, number), h("span", { class: "heat" }), content || " "))) : missing(`The text of ${base(file)}: ${data.noText[file] ?? "not read"}.`))
  }

  const update = (changed: Set<string> | null): void => {
    if (!changed || changed.has("process")) { collect(); collectFirsts(); chosen = null; draw() }
    else if (changed.has("area")) {
      const area = state.now.area !== null ? process().json.areas[state.now.area] : null
      if (area?.source?.line) chosen = `${area.source.file}:${area.source.line}`
      draw()
    }
  }
  return { element, update, show: key => { chosen = key; draw() } }
}

function bytes(one: ProcessData, entry: Entry): number { return entry.areas.reduce((sum, at) => sum + one.json.areas[at].live_bytes, 0) }

function around(known: Record<string, string>, line: number): [number, string][] {
  const found: [number, string][] = []
  for (let number = Math.max(1, line - 6); number <= line + 6; number++) if (String(number) in known) found.push([number, known[String(number)]])
  return found
}

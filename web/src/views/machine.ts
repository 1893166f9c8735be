// What did it run on, and what could homing use?

import type { ProcessData } from "../data"
import { count, fill, h, missing, size } from "../dom"
import { nodeColour, onTheme } from "../theme"

export function machineView(process: () => ProcessData): { element: HTMLElement; update: (changed: Set<string> | null) => void } {
  const element = h("div", { class: "machine" })
  const draw = (): void => {
    const one = process(), { json } = one
    const threads = new Map<number, number>()
    for (const thread of json.threads) if (thread.node !== null) threads.set(thread.node, (threads.get(thread.node) ?? 0) + 1)
    const unbound = json.threads.filter(thread => !thread.bound).length
    const facts: [string, string | undefined][] = [
      ["threads", `${count(json.threads.length)}${unbound ? `, ${count(unbound)} not bound` : json.threads.length ? ", bound" : ""}`],
      ["touches come from", json.facts.source ? `${json.facts.source}${json.facts.questions ? `, and ${json.facts.questions} for what is asked` : ""}` : undefined],
      ["why not better", json.facts.source_reasons], ["mechanism", json.facts.mechanism], ["nodes come from", json.facts.machine], ["costs", json.facts.costs], ["reckoned with", json.facts.cost_values],
      ["cache of a node", json.facts.cache_bytes ? size(Number(json.facts.cache_bytes)) : undefined], ["binding", json.facts.binding], ["initial placement", json.facts.initial],
      ["windows", json.windows.armed ? `${count(json.windows.armed)} armed, ${count(json.windows.touched)} touched, ${count(json.windows.calls)} system calls` : undefined],
      ["not watched", json.unwatched.length ? json.unwatched.slice(0, 6).map(entry => `${entry.what} ${size(entry.bytes)}`).join(", ") : undefined],
      ["host", json.record.host], ["started", new Date(json.record.start * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC"], ["command", [json.record.program, ...json.record.arguments.slice(1)].join(" ")], ["homing", json.record.homing],
    ]
    element.classList.toggle("many", json.nodes.length > 16)
    const memory = json.nodes.some(node => node.memory_bytes > 0)
    fill(element,
      h("div", {}, h("h3", {}, "Nodes"), json.nodes.length ? h("div", { class: "scrolled short", tabindex: 0, role: "region", "aria-label": "Nodes" }, h("table", { class: "plain" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "node"), h("th", { scope: "col", class: "right" }, "CPUs"), memory && h("th", { scope: "col", class: "right" }, "memory"), memory && h("th", { scope: "col", class: "right" }, "free at the start"), h("th", { scope: "col", class: "right" }, "threads"), h("th", { scope: "col" }, ""))),
        h("tbody", {}, json.nodes.map(node => h("tr", {}, h("th", { scope: "row" }, node.position !== null && h("span", { class: "swatch", style: `background:${nodeColour(node.position)}` }), `node ${node.index}`), h("td", { class: "right" }, node.cpus), memory && h("td", { class: "right" }, size(node.memory_bytes)), memory && h("td", { class: "right" }, size(node.free_bytes)), h("td", { class: "right" }, threads.get(node.index) ?? (unbound ? "–" : 0)), h("td", { class: "dim" }, node.target ? "" : "never a target")))))) : missing("No node was recorded: the library stepped aside.")),
      h("div", {}, h("h3", {}, "Distances"), json.distances.length ? distances(one) : missing("The system states no distances.")),
      h("div", { class: "wide" }, h("h3", {}, "What homing used"), h("dl", { class: "facts" }, facts.filter(fact => fact[1]).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value!))))),
      json.messages.length > 0 && h("div", { class: "wide" }, h("h3", {}, "What it said"), h("ul", { class: "messages" }, json.messages.slice(0, 50).map(message => h("li", {}, h("span", { class: "dim" }, `${message.level}: `), message.text, message.repeats > 1 && h("span", { class: "dim" }, ` (${count(message.repeats)} times)`))))))
  }
  onTheme(draw)
  return { element, update: changed => { if (!changed || changed.has("process")) draw() } }
}

function distances(one: ProcessData): HTMLElement {
  const { nodes, distances: table } = one.json
  const largest = Math.max(...table.flat().map(value => value ?? 0), 1)
  const least = Math.min(...table.flat().map(value => value ?? Infinity))
  return h("div", { class: "scrolled", tabindex: 0, role: "region", "aria-label": "Distances" }, h("table", { class: `cells${nodes.length > 16 ? " many" : ""}` },
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "corner" }, "from ↓ to →"), ...nodes.map(node => h("th", { scope: "col" }, node.index)))),
    h("tbody", {}, nodes.map((node, from) => h("tr", {}, h("th", { scope: "row" }, node.index), ...table[from].map((value, to) => h("td", { class: from === to ? "local" : "", style: `--weight:${value === null || largest === least ? 0 : (0.5 * (value - least)) / (largest - least)}` }, nodes.length > 16 ? "" : value ?? "?")))))))
}

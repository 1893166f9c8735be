// What is selected: the one thing that all views share. It stands in the address, so that a view can be linked.

export interface Selection {
  process: number
  area: number | null
  iteration: number | null
  node: number | null
  filter: string
}
type Name = keyof Selection

export class State {
  readonly now: Selection = { process: 0, area: null, iteration: null, node: null, filter: "" }
  private listeners: ((changed: Set<Name>) => void)[] = []

  constructor(private counts: { processes: number; areas: (process: number) => number }) {
    this.read()
    addEventListener("hashchange", () => this.set(this.parsed()))
  }

  /** Calls when something was selected; `changed` says what. */
  listen(listener: (changed: Set<Name>) => void): void { this.listeners.push(listener) }

  set(values: Partial<Selection>): void {
    const changed = new Set<Name>()
    for (const [name, value] of Object.entries(values) as [Name, never][])
      if (this.now[name] !== value) { this.now[name] = value; changed.add(name) }
    if (changed.has("process")) for (const name of ["area", "iteration", "node"] as const) if (!(name in values)) { this.now[name] = null; changed.add(name) }
    if (!changed.size) return
    this.write()
    for (const listener of this.listeners) listener(changed)
  }

  private read(): void { Object.assign(this.now, this.parsed()) }

  private parsed(): Partial<Selection> {
    const found = new URLSearchParams(location.hash.slice(1))
    const whole = (name: string, below: number): number | null => {
      const value = found.get(name)
      return value !== null && /^\d{1,9}$/.test(value) && Number(value) < below ? Number(value) : null
    }
    const process = whole("process", this.counts.processes) ?? 0
    return { process, area: whole("area", this.counts.areas(process)), iteration: whole("iteration", Infinity), node: whole("node", 1024), filter: found.get("filter") ?? "" }
  }

  private write(): void {
    const words = new URLSearchParams()
    for (const [name, value] of Object.entries(this.now)) if (value !== null && value !== "" && !(name === "process" && value === 0)) words.set(name, String(value))
    const hash = words.toString()
    // Safari forbids this for files where it is asked too often; the page goes on without.
    try { history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search) } catch { /* no matter */ }
  }
}

"""Random programs in the rest of the language: pieces in C and C++.

Macros, typedefs, structs with arrays, static locals, arrays of variable length, ternaries, comma operators,
pointer aliases; in C++ range-for, lambdas, references and templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIT = {
    "typedef": "typedef long number;",
    "at": "#define AT({a}) {b}",
    "upto": "#define UPTO(v, lo, hi) for (v = (lo); v <= (hi); ++v)",
    "pair": "struct pair { long v[2]; long c; };",
    "counted": "static long counted(long v) { static long calls; calls += 1; return v + calls; }",
    "bump": "static void bump(long *v, long by) { *v = SMALL(*v + by); }",
    "bump_row": "static void bump_row(long *v, int n) { for (int i = 1; i <= n; i++) v[i] = SMALL(v[i]+1); }",
    "row_sum": "static long row_sum(const long *v, int n) { long s = 0; while (n)  s += v[n--]; return s;}",
    "levels": "enum level { LOW = 1, MID = 2, TOP = 2 + MID };",
    "par": '#define PAR _Pragma("omp parallel for")',
}
CXX_KIT = {
    "typedef": "using number = long;",
    "bigger": "template <class T> static T bigger(T a, T b) { return a > b ? a : b; }",
    "space": "namespace inner { static const long BY = 3; static inline long up(long v) { return v + BY; } }",
}


class WiderC:
    """Mixed in before WholeProgram, whose parts it uses."""

    kit: set[str]
    to: Any
    random: Any
    variables: list[str]
    arrays: list[str]
    storage: str
    cxx: bool
    _at: Any
    _home_of: Any
    _everywhere: Any

    def _c_kit(self) -> None:
        """What is used of the kit, before the procedures."""
        two = len(self.variables) == 2
        names = {"{a}": "a, i, j" if two else "a, i", "{b}": "(a)[i][j]" if two else "(a)[(i)]"}
        known = {**KIT, **(CXX_KIT if self.cxx else {})}
        made = []
        for one in (one for one in known if one in self.kit):
            text = known[one]
            for old, new in names.items():
                text = text.replace(old, new)
            made.append(text)
        at = self.to.lines.index("/*procedures*/")
        self.to.lines[at:at] = made

    def _line(self, array: str, index: str) -> str:
        """A pointer to the first element of a row."""
        return f"{array}[{index}]" if len(self.variables) == 2 else array

    def _c_piece(self) -> None:
        kinds: list[Callable[[str, str], list[str]]] = [
            self._aliased, self._macros, self._structs, self._statics, self._variable_length, self._operators,
            self._loops_of_c, self._switched, self._passed, self._guarded_by_preprocessor, self._tasks_of_c,
        ]  # fmt: skip
        if self.cxx:
            kinds += [self._of_cxx] * 5
        one, other = self.random.sample(self.arrays, 2)
        for line in self.random.choice(kinds)(one, other):
            self.to.out(line)

    def _aliased(self, one: str, other: str) -> list[str]:
        two = len(self.variables) == 2
        width = "[n + 4]" if self.storage in ("allocated", "new") else "[12]"
        view = f"long (*view){width} = {one}" if two else f"long *view = {one}"
        element = self._at("view", "2")
        found = [
            ["{", f"long *p = &{self._at(one)};", f"*p = *p + {self._at(other)} % 7;", "p[1] = 3;", "}"],
            ["{", f"long *p = {self._line(one, '2')} + 1;", "*p++ = 5; *p = 6;", "}"],
        ]
        if not (self.cxx and two and width == "[n + 4]"):
            found += [
                ["{", f"{view};", f"{element} = 9;", f"total += {element};", "}"],
                ["{", f"{view};", "#pragma omp parallel for", "for (int r = 1; r <= n; r++)",
                 f"{self._at('view', 'r')} = SMALL({self._at('view', 'r')} + {self._at(other, 'r')});", "}"],
            ]  # fmt: skip
        return self.random.choice(found)

    def _macros(self, one: str, other: str) -> list[str]:
        self.kit |= {"at", "upto", "par"}
        args = ", ".join(["i", "2"][: len(self.variables)])
        loop = f"AT({one}, {args}) = SMALL(AT({other}, {args}) + 1);"
        return self.random.choice(
            [
                ["UPTO(i, 1, n) {", loop, "}"],
                ["#pragma omp parallel for", "for (i = 1; i <= n; i++)", loop],
                ["PAR", "for (i = 1; i <= n; i++)", loop],
                ["#pragma omp parallel for", "UPTO(i, 1, n)", loop],
            ]
        )

    def _structs(self, one: str, other: str) -> list[str]:
        self.kit.add("pair")
        element = self._at(one, "r")
        return self.random.choice(
            [
                ["{", "struct pair held = {{1, 2}, 3};", "#pragma omp parallel for",
                 "for (int r = 2; r <= n; r++)", f"{element} = SMALL({element} + held.v[r % 2] * held.c);",
                 "total += held.c;", "}"],
                ["{", "struct pair table[16];", "#pragma omp parallel for", "for (int r = 0; r < 16; r++)",
                 "table[r].v[1] = r, table[r].c = 2 * r;", "total += table[3].v[1] + table[2].c;", "}"],
                ["{", "struct pair held = {{0, 2}, 3}, *at = &held;", f"at->v[1] = {self._at(other)};",
                 f"{self._at(one)} = at->v[1] + (*at).c;", "}"],
            ]
        )  # fmt: skip

    def _statics(self, one: str, other: str) -> list[str]:
        self.kit |= {"counted", "levels", "typedef"}
        return self.random.choice(
            [
                [f"{self._at(one)} = SMALL(counted({self._at(other)}));"],
                ["total += counted(2);"],
                ["{ static number before; before += 2;", f"total += before + {self._at(other)} * MID; }}"],
                [f"switch ({self._at(one)} % 3) {{", f"case LOW: {self._at(one)} = TOP; break;",
                 "case MID: total += 3; break;", "default: total += LOW; }"],
            ]
        )  # fmt: skip

    def _variable_length(self, one: str, other: str) -> list[str]:
        size = "16" if self.cxx else "n + 4"
        return self.random.choice(
            [
                ["{", f"long tmp[{size}];", f"for (i = 0; i <= n; i++) tmp[i] = {self._at(other, 'i')};",
                 "#pragma omp parallel for", "for (i = 1; i <= n; i++)",
                 f"{self._at(one, 'i')} = SMALL(tmp[i] + tmp[i - 1]);", "}"],
                ["#pragma omp parallel for private(j)", "for (i = 1; i <= n; i++) {", f"long tmp[{size}];",
                 f"for (j = 0; j <= n; j++) tmp[j] = j + {self._at(other, 'i')};",
                 f"{self._at(one, 'i')} = SMALL(tmp[n] + tmp[0]);", "}"],
            ]
        )  # fmt: skip

    def _operators(self, one: str, other: str) -> list[str]:
        a, b = self._at(one), self._at(other, "2")
        return self.random.choice(
            [
                [f"{a} = {b} > 50 ? {b} : 7;"],
                [f"q = 3, {a} = SMALL(q + {b}), total += q;"],
                [f"{a}++, --{b}, {a} += {b}++;", f"{b} <<= 1, {b} %= 10007;"],
                [f"if (!({a} & 1) || ({b} > 3 && {a} != {b})) {a} ^= 5;"],
                [f"total += sizeof {a} + sizeof(long);"],
                [f"i = 1; {self._at(one, 'i++')} = i;"],
                [f"*({self._line(one, '2')} + 1) = {b};"],
                [f"(n > 3 ? &{a} : &{b})[0] = 4;"],
            ]
        )

    def _loops_of_c(self, one: str, other: str) -> list[str]:
        head = self.random.choice(
            ["for (int r = 2; r < n + 1; ++r)", "for (int r = n; r > 1; r--)",
             "for (int r = 2; n >= r; r += 1)", "for (int r = 2; r <= n; r = r + 1)",
             "for (int r = 2; r != n + 1; r++)",
             "for (size_t r = 2; r <= (size_t)n; r++)",
             "for (long r = 2, *unused = w; r <= n; r++, (void)unused)",
             "for (register int r = 2; r <= n; r = 1 + r)"]
        )  # fmt: skip
        shared = ["#pragma omp parallel for"] if "unused" not in head else []
        if ("register" in head and self.cxx) or ("r != " in head and self.random.random() < 0.5):
            head = "for (int r = 2; r <= n; r++)"
        if "r != " in head:  # it ends only where it begins below
            shared, head = [], head.replace("r != n + 1", "r < n + 1")
        body = f"{self._at(one, 'r')} = SMALL({self._at(other, 'r')} + {self._at(one, 'r')});"
        return [*shared, head, self.random.choice([body, f"{{ {body} }}", f"if (r != 3) {body}"])]

    def _switched(self, one: str, other: str) -> list[str]:
        return self.random.choice(
            [
                ["i = 0;", "while (i < n) {", "i++;", f"if ({self._at(other, 'i')} > 5000) continue;",
                 f"if ({self._at(other, 'i')} > 9990) break;", f"{self._at(one, 'i')} = 3;", "}"],
                ["i = 1;", "do {", f"{self._at(one, 'i')} += i;", "} while (++i <= n);"],
                [f"if ({self._at(other)} > 4) goto past_{len(self.to.lines)};", f"{self._at(one)} = 2;",
                 f"past_{len(self.to.lines)}:;"],
            ]
        )  # fmt: skip

    def _passed(self, one: str, other: str) -> list[str]:
        self.kit |= {"bump", "bump_row", "row_sum"}
        loop = ["#pragma omp parallel for", "for (int r = 2; r <= n; r++)"]
        found = [
            [f"bump(&{self._at(one)}, {self._at(other)});"],
            [f"bump_row({self._line(one, '2')}, n);", f"total += row_sum({self._line(other, '1')}, n);"],
            [*loop, f"bump(&{self._at(one, 'r')}, 3);"],
        ]
        if len(self.variables) == 2:
            found += [
                [*loop, f"bump_row({one}[r], n);"],
                [*loop, f"{one}[r][1] = SMALL(row_sum({other}[r], n));"],
            ]
        return self.random.choice(found)

    def _guarded_by_preprocessor(self, one: str, other: str) -> list[str]:
        condition = self.random.choice(["#ifdef _OPENMP", "#if 1", "#if defined(_OPENMP) && _OPENMP > 2000"])
        return [
            condition,
            "#pragma omp parallel for",
            "#endif",
            "for (i = 1; i <= n; i++) {",
            "#if 0",
            "this is no program(",
            "#else",
            f"{self._at(one, 'i')} = SMALL({self._at(other, 'i')} + 2);",
            "#endif",
            "}",
        ]

    def _tasks_of_c(self, one: str, other: str) -> list[str]:
        return self.random.choice(
            [
                ["#pragma omp parallel", "#pragma omp single", "{", "#pragma omp task shared(total)",
                 "total += 1;", "#pragma omp taskwait", "}"],
                ["#pragma omp parallel", "#pragma omp masked", f"total += {self._at(one)};"],
                ["#pragma omp parallel sections", "{", "#pragma omp section", "total += 1;",
                 "#pragma omp section", f"{self._at(other)} = 2;", "}"],
                ["#pragma omp parallel", "{", "#pragma omp single nowait", "total += 2;", "}"],
            ]
        )  # fmt: skip

    def _of_cxx(self, one: str, other: str) -> list[str]:
        self.kit |= {"bigger", "space", "typedef"}
        a, b = self._at(one, "r"), self._at(other, "r")
        loop = [
            "#pragma omp parallel for",
            self.random.choice(["for (int r = 2; r <= n; r++)", "for (auto r = 2; r <= n; ++r)"]),
        ]
        return self.random.choice(
            [
                [*loop, f"{a} = bigger({b}, 5L);"],
                [*loop, f"{a} = bigger<long>({b}, {a});"],
                [*loop, f"{a} = inner::up({b}) % 10007;"],
                [*loop, f"{{ long &e = {a}; e = SMALL(e + {b}); }}"],
                [*loop, f"{{ const long &e = {b}; {a} = SMALL(e + 1); }}"],
                [*loop, f"{{ auto up = [](long v) {{ return v + 1; }}; {a} = SMALL(up({b})); }}"],
                [*loop, f"{{ number e = static_cast<number>({b}); {a} = e; }}"],
                [f"for (long v : {{1L, 2L, 3L}}) total += v * {self._at(one)};"],
                ["{ long few[] = {1, 2, 3};", "for (auto &v : few) v += 1;", f"{self._at(one)} = few[2]; }}"],
                [f"[&] {{ {self._at(one)} = 4; }}();"],
                [f"{{ auto set = [&](long v) {{ {self._at(one)} = v; }}; set(3); total += 1; }}"],
                [f"{{ auto &e = {self._at(other)}; e += 2; }}"],
                [f"if (long v = {self._at(one)}; v > 3) total += v;"],
                [f"total += bigger<long>({self._at(one)}, {self._at(other)});"],
            ]
        )

    def _wide_c_loop(self, one: str, other: str, order: list[str]) -> None:
        if self.random.random() < 0.4:
            self._home_of(one, self.variables, order)
        a, b = self.to.element(one, self.variables), self.to.element(other, self.variables)
        i = order[-1]
        kinds = [
            f"{a} = {b} > 50 ? {b} - 1 : {b} + 1;",
            f"q = {b}, {a} = SMALL(q * 3);",
            f"{a} += {b} % 5;",
            f"{a}++;",
            f"{a} = SMALL({a}), {a} ^= {b} & 7;",
            f"if ({b} > 5000) continue; {a} = {b} + 1;",
            f"switch ({b} % 3) {{ case 0: {a} = 1; break; case 1: {a} = {b}; break; default:; }}",
            f"long own = {b}; own *= own; {a} = SMALL(own);",
            f"long tmp[3] = {{{b}, 2, 3}}; {a} = tmp[{i} % 3];",
            f"for (int m = 0; m < 4; m++) {{ if (m == 3) break; {a} = SMALL({a} + m * {b}); }}",
            f"static const long few[3] = {{4, 5, 6}}; {a} = few[{i} % 3];",
            f"q = 0; while (q < 3) q++; {a} = SMALL({b} + q);",
            f"q = 0; do {{ q += 2; }} while (q < 5); {a} = SMALL({b} + q);",
            f"long {other}_ = {b}; {{ long own = {other}_; {a} = own; }}",
            f"const long *p = &{b}; {a} = *p;",
            f"if ({b} > 50) {a} = 2; else if ({b} > 20) {a} = 3; else {a} = {b};",
        ]
        if self.cxx:
            kinds += [
                f"auto e = {b}; {a} = e;",
                f"auto f = [](long v) -> long {{ return SMALL(v + 3); }}; {a} = f({b});",
                f"long &e = {a}; e = {b};",
                f"for (long v : {{1L, 2L}}) {a} = SMALL({a} + v * {b});",
            ]
        body = self.random.choice(kinds)
        inner = "" if len(order) == 1 else f"private({order[1]}, q)"
        declared = self.random.random() < 0.4
        named = "" if declared else inner
        clauses = (named or "private(q)") if not declared else "private(q)"
        split = " \\\n    " if self.random.random() < 0.15 else " "
        collapse = " collapse(2)" if len(order) == 2 and self.random.random() < 0.1 else ""
        if collapse and not declared:
            clauses = "private(q)"
        self.to.out(f"#pragma omp parallel for{split}{clauses}{collapse}")
        kind = "int " if declared else ""
        heads = [
            f"for ({kind}{v} = 2; " + self.random.choice([f"{v} <= n; {v}++)", f"{v} < n + 1; ++{v})"])
            for v in order
        ]
        text = " ".join(heads) + f" {{ {body} }}"
        if self.random.random() < 0.3 and not collapse and len(heads) == 2:
            text = f"{heads[0]} {{ {heads[1]} {{ {body} }} }}"
        self.to.out(text)

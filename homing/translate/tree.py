"""The program as the translator sees it: the same tree for Fortran and C.

The tree holds what matters for distributed arrays (loops, branches, OpenMP constructs, accesses) and where it
stands in the text; everything else stays the user's text. Offsets count characters of the file from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from homing.translate.directives.model import Directive, Form
from homing.translate.source import SourceFile

#: Labels that a statement may lead to though it is no jump: of READ and WRITE, and alternate returns.
_LEADS = re.compile(r"(?:[(,](?:err|end|eor)=|[(,]\*)(\d+)(?=[,)])")


class Access(Enum):
    READ = "read"
    WRITE = "write"
    UPDATE = "update"  # read and written (C's +=)
    ARGUMENT = "argument"  # passed on whole to a procedure of the program
    OTHER = "other"  # a use that cannot be followed: a pointer is made of it, say


@dataclass
class Subscript:
    """One subscript. A section has low and high (None: from or to the bound); section alone is `:`."""

    begin: int
    end: int
    text: str  # normalised
    section: bool = False
    low: str | None = None
    high: str | None = None
    step: str | None = None


@dataclass
class Reference:
    """One appearance of an array. subscripts is None where the bare name stands."""

    name: str
    begin: int
    name_end: int
    end: int
    subscripts: list[Subscript] | None
    access: Access
    conditional: bool = False  # inside an expression that may not be evaluated, or under a mask
    argument_of: str | None = None  # the procedure, and which argument (from 0)
    argument_index: int = 0
    value_used: bool = False  # C: the procedure returns an address, with which something is done
    #: C: the calls (and which argument) that get more than a number of it beside others, inner ones first.
    given_to: tuple[tuple[str, int], ...] = ()
    argument_keyword: str | None = None  # Fortran: the dummy's name, where it is given
    component_of: str | None = None  # Fortran: a component of it is passed to this procedure
    intrinsic: bool = False  # Fortran: a function of the language, not the program's
    array: bool = False  # Fortran: declared in the procedure or around it, and so no function
    confined: bool = False  # C: of its address no more than a number comes out of the expression
    changed: bool = False  # OTHER, for a macro stands there, but it is surely written
    only_read: bool = False  # OTHER or ARGUMENT, but nothing is written by it
    constant: bool = False  # C++: a variable that nothing may change
    brought: str | None = None  # not in the text: see brought.py; what comes before it in the list
    apart: str | None = None  # C++: why it is not followed: it goes to a class, a template or a lambda


class Kind(Enum):
    ASSIGNMENT = "assignment"
    CALL = "call"
    ALLOCATE = "allocate"
    DEALLOCATE = "deallocate"
    INPUT = "input"
    OUTPUT = "output"
    JUMP = "jump"  # goto, return, exit, cycle, break, continue, stop
    OTHER = "other"


#: The label of a statement that stands for `case ...:` or `default:` of C, to which SWITCH alone leads.
CASE = " case"
#: C++: what the code of classes, templates and lambdas together is called: which of it a call or the end of
#: an object runs is not followed.
CLASSES = "code of classes"


@dataclass(frozen=True)
class Taking:
    """C: `p = malloc(n)`, all of it, inside an expression or not."""

    name: str
    begin: int
    end: int
    used: bool = True  # something has its value


@dataclass(frozen=True)
class Given:
    """C: another way in which a pointer gets memory: a function fills it by its address (`value`: it has
    one), it gets what `sources` mean, or something else has its address (`kept`); with the place of the call,
    the assignment, or the address. `macro`: there stands a macro that makes the call."""

    name: str
    begin: int
    end: int
    sources: tuple[str, ...] = ()
    value: bool = False
    kept: bool = False
    macro: bool = False
    used: bool = True  # an assignment: something has its value


@dataclass(frozen=True)
class Swap:
    """A statement of those by which distributed arrays change places: the two that do so in it; None: in it
    a variable gets, or gives, what one of them was. function: of the program, that it calls for it."""

    pair: tuple[str, str] | None
    function: str = ""


@dataclass
class Statement:
    """A statement without a body, or the head of a loop or branch."""

    begin: int
    end: int
    kind: Kind
    text: str  # normalised: comments and continuations taken out, names in the form that is compared
    references: list[Reference] = field(default_factory=list)
    reads: frozenset[str] = frozenset()  # names of anything
    writes: frozenset[str] = frozenset()
    calls: tuple[str, ...] = ()
    pointed: tuple[str, ...] = ()  # C: functions that it names, and does not call itself
    through: frozenset[str] = frozenset()  # C: types of functions that it calls by pointers; "": any
    jump: str | None = None  # the word
    targets: tuple[str, ...] = ()  # Fortran: labels that it may jump to; the construct of EXIT and CYCLE
    form: str = ""  # Fortran: which statement it is (front/kinds.py)
    unread: str | None = None  # Fortran: what of it the front has no tree for
    label: str | None = None
    within: bool = False  # C: memory is taken inside a larger expression
    takes: tuple[Taking, ...] = ()  # C: the assignments that give pointers the values of calls
    given: tuple[Given, ...] = ()  # C: other ways in which pointers get memory
    decides: bool = False  # C: the condition of an IF
    commas: tuple[int, ...] = ()  # C: between expressions that take or free memory, one after the other
    guarded: bool = False  # a logical IF before it
    swap: Swap | None = None  # see plan/swaps.py
    places: list[int] = field(default_factory=list)  # offset of each character of `code`
    code: str = ""  # text with the user's own letters


@dataclass
class Loop:
    """A counted loop; `variable` is None for any other."""

    head: Statement
    body: list[Node]
    end: int  # offset behind its last statement
    end_begin: int  # offset of the statement that ends it (C: `end`, or the WHILE of a DO)
    variable: str | None = None
    first: Subscript | None = None
    last: Subscript | None = None  # inclusive
    step: str = "1"
    label: str | None = None
    body_begin: int = 0  # offset where a statement can be put at the beginning of the body
    unrolled_reason: str | None = None  # why a loop is not counted
    condition: tuple[int, int] = (0, 0)  # C: where the condition and the step stand
    increment: tuple[int, int] = (0, 0)
    unsigned: bool = False  # C: the counter has no negative values

    @property
    def begin(self) -> int:
        return self.head.begin


#: Heads of arms that run where no other one does, without blanks; C's ELSE has no text.
_OTHERWISE = frozenset(["", "else", "casedefault", "classdefault", "rankdefault"])


@dataclass
class Branch:
    """if, select, switch, where, block: heads with a body each."""

    arms: list[tuple[Statement, list[Node]]]
    end: int
    conditional: bool = True  # False: a block that is always run
    masked: bool = False  # where, forall
    body_begins: list[int] = field(default_factory=list)
    switch: bool = False  # C's: one arm, which may be entered at each case, and which a break leaves
    tries: bool = False  # C++: TRY, with its handlers

    @property
    def begin(self) -> int:
        return self.arms[0][0].begin

    @property
    def complete(self) -> bool:
        """Does one of the arms with statements run, whatever is asked?"""
        if not self.conditional:
            return True
        if self.masked or self.switch or self.tries:
            return False
        return any("".join(head.text.lower().split()) in _OTHERWISE for head, _ in self.arms[1:])


@dataclass(frozen=True)
class Clause:
    """An OpenMP clause: name(text), with its place."""

    name: str
    text: str | None
    begin: int
    end: int


@dataclass
class OpenMP:
    """An OpenMP directive. name: `parallel do` (C's `for` is `do` here, too), `end parallel`."""

    name: str
    clauses: list[Clause]
    begin: int
    end: int
    text: str

    def clause(self, *names: str) -> list[Clause]:
        return [clause for clause in self.clauses if clause.name in names]

    def listed(self, *names: str) -> set[str]:
        """The variables in the clauses of these names."""
        found: set[str] = set()
        for clause in self.clause(*names):
            text = clause.text or ""
            before, colon, behind = text.partition(":")
            if clause.name == "linear":
                text = before
            elif colon and "[" not in before:  # an operator or modifier; a section has its colon in brackets
                text = behind
            words = (word.partition("[")[0].strip() for word in text.split(","))
            found.update(word for word in words if word)
        return found


@dataclass
class Construct:
    """An OpenMP construct: the directive and what it applies to. A barrier has no body."""

    directive: OpenMP
    body: list[Node]
    end: int
    closing: OpenMP | None = None
    homing: list[Directive] = field(default_factory=list)  # for the loop that follows

    @property
    def begin(self) -> int:
        return self.directive.begin

    @property
    def parallel(self) -> bool:
        return self.directive.name.split()[:1] == ["parallel"]

    @property
    def worksharing(self) -> bool:
        return "do" in self.directive.name.split()


@dataclass
class Executable:
    """A homing directive among the statements: REDISTRIBUTE, or one for the next loop."""

    directive: Directive
    begin: int
    end: int


Node = Statement | Loop | Branch | Construct | Executable


@dataclass
class Bound:
    """One dimension of an array: inclusive, as text. upper None: `*` or unknown. deferred: `:`."""

    lower: str
    upper: str | None
    deferred: bool = False


@dataclass
class Declaration:
    """Where a variable is declared. bounds is empty for a scalar."""

    name: str
    spelling: str
    type: str  # without attributes: real(8), double
    bounds: list[Bound]
    begin: int  # of the entity in its list
    end: int
    statement_begin: int
    statement_end: int
    entities: int = 1  # in the same statement
    attributes: frozenset[str] = frozenset()
    initial: str | None = None
    storage: str = "static"  # static, automatic, allocatable, dummy, pointer, common
    separate_shape: tuple[int, int] | None = None  # Fortran's DIMENSION attribute is shared by the entities
    elsewhere: tuple[tuple[int, int], ...] = ()  # other statements (begin, end) that declare it, too
    block: str = ""  # COMMON: whose it is; the blank one has no name
    length: str = ""  # Fortran: behind the name or the bounds, *8 or *(n); the type has it, too
    number: bool = False  # C: its type holds no address
    addresses: bool = False  # C: its elements hold addresses


@dataclass(frozen=True)
class Prototype:
    """C: a function declared without its body; where it and its parameters stand."""

    name: str
    begin: int
    end: int
    parameters: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Mention:
    """C++: a word that may mean a variable or a function, where that is no plain access or call. what: the
    code that it stands in, which is not read; nothing where it is."""

    name: str
    begin: int
    end: int
    what: str


@dataclass
class Apart:
    """C++: the code of a file that stays as it is: of classes, templates and headers.

    used: is there any? words: all of its words, with their places. begun: variables that are made before
    main by calls. late: its functions' own ones, which end behind main. wrong: what may not be there at all
    (begin, end, why). unfit: functions that may not get parts of arrays, and why. regions: its parallel
    constructs (begin, end, what has them)."""

    used: bool = False
    mentions: list[Mention] = field(default_factory=list)
    words: dict[str, int] = field(default_factory=dict)
    begun: list[Statement] = field(default_factory=list)
    late: bool = False
    wrong: list[tuple[int, int, str]] = field(default_factory=list)
    unfit: dict[str, str] = field(default_factory=dict)
    regions: list[tuple[int, int, str]] = field(default_factory=list)


@dataclass
class Routine:
    """A procedure, a main program, or (module = True) a module, or a C file's own scope."""

    name: str
    source: SourceFile
    begin: int
    end: int
    body: list[Node] = field(default_factory=list)
    declarations: dict[str, Declaration] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    brought: list[str] = field(default_factory=list)  # of these, those that the text does not have
    main: bool = False
    module: bool = False
    result: str | None = None
    result_type: str = ""  # Fortran: as the head says it
    parent: Routine | None = None
    uses: dict[str, tuple[int, int, str | None]] = field(default_factory=dict)  # module: statement, ONLY list
    known: dict[str, frozenset[str]] = field(default_factory=dict)  # what those that are given bring
    renamed: list[tuple[str, str, int, int]] = field(default_factory=list)  # USE m, x => y: m, y, begin, end
    directives: list[Directive] = field(default_factory=list)
    head_end: int = 0  # offset behind the line of the head
    declarations_end: int = 0  # offset of the first executable line
    body_end: int = 0  # offset of the line that ends it, or contains
    arguments_end: int = 0  # offset of the bracket that closes the list of arguments
    equivalence: frozenset[str] = frozenset()
    private: frozenset[str] = frozenset()  # THREADPRIVATE
    places: dict[str, list[int]] = field(default_factory=dict)  # C: where the name is declared, in any block
    inner: frozenset[str] = frozenset()  # C: of these, those that an inner block declares
    prototypes: list[Prototype] = field(default_factory=list)  # of a C file
    headers: dict[str, str] = field(default_factory=dict)  # C file: which header declares a function
    freeing: dict[str, set[int]] = field(default_factory=dict)  # C file: arguments that a header's free
    #: C file: arguments that a header's functions keep, and return.
    keeping: dict[str, tuple[frozenset[int], frozenset[int]]] = field(default_factory=dict)
    quiet: dict[str, frozenset[str]] = field(default_factory=dict)  # C file: see front/c_quiet.py
    #: C file: functions that pointers may mean, and of which type; "": of any.
    pointed: dict[str, str] = field(default_factory=dict)
    releasing: dict[str, set[int]] = field(default_factory=dict)  # C file: those that prototypes' may free
    included: set[str] = field(default_factory=set)  # C file: variables that its headers declare
    again: dict[str, list[Declaration]] = field(default_factory=dict)  # C file: other ones of its variables
    namespaces: dict[str, str] = field(default_factory=dict)  # C++ file: where its variables stand
    blocks: list[tuple[int, int, str]] = field(
        default_factory=list
    )  # C++ file: its namespaces', from outside
    apart: Apart | None = None  # C++ file: see Apart
    #: Names that something else reaches, unseen: where that is said (begin, end), and how.
    unseen: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    saves: bool = False  # Fortran: a SAVE without names holds
    said: list[tuple[str, str]] = field(default_factory=list)  # Fortran: names in SAVE, DATA, NAMELIST
    implicit_none: bool = False
    implicit: dict[str, str] = field(default_factory=dict)  # Fortran: types by first letter
    functions: dict[str, Statement] = field(default_factory=dict)  # Fortran's statement functions

    def lookup(self, name: str) -> tuple[Routine, Declaration] | None:
        """The declaration that the name means here, without those that come by USE."""
        scope: Routine | None = self
        while scope is not None:
            if name in scope.declarations:
                return scope, scope.declarations[name]
            scope = scope.parent
        return None

    @property
    def outermost(self) -> Routine:
        """The scope around all others that the routine lies in, or itself: of C that of the file."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def names_by_use(self) -> Iterator[tuple[str, str, str]]:
        """Fortran: what its USE statements rename (`x => y`): the module, y, and x in lower case."""
        for module, original, begin, end in self.renamed:
            local = self.source.text[begin:end].partition("=>")[0]
            yield module, original, local.strip().lower()


@dataclass
class Unit:
    """A source file, read."""

    source: SourceFile
    form: Form
    routines: list[Routine]


def walk(nodes: list[Node]) -> Iterator[Node]:
    """Every node below, outer ones first."""
    for node in nodes:
        yield node
        if isinstance(node, Loop | Construct):
            yield from walk(node.body)
        elif isinstance(node, Branch):
            for _, body in node.arms:
                yield from walk(body)


def statements(nodes: list[Node]) -> Iterator[Statement]:
    """Every statement below, the heads of loops and branches included."""
    for node in walk(nodes):
        if isinstance(node, Statement):
            yield node
        elif isinstance(node, Loop):
            yield node.head
        elif isinstance(node, Branch):
            for head, _ in node.arms:
                yield head


def by_pointers_alone(statement: Statement) -> bool:
    """C++: may a statement run code of classes by its calls through pointers to functions alone? Each of them
    counts as such a call once, as all others do."""
    pointers = sum(name.startswith("*") for name in statement.calls)
    return 0 < statement.calls.count(CLASSES) <= pointers


def leads(statement: Statement) -> set[str]:
    """The labels at which the program may go on behind a statement."""
    others = _LEADS.findall(statement.text.replace(" ", "").lower())
    return {*(statement.targets if statement.jump == "goto" else ()), *others}


def references(nodes: list[Node]) -> Iterator[Reference]:
    """Every reference below."""
    for statement in statements(nodes):
        yield from statement.references


def written_in_all(nodes: Iterable[Node]) -> frozenset[str]:
    return frozenset[str]().union(*(written_in(node) for node in nodes))


def written_in(node: Node) -> frozenset[str]:
    names: frozenset[str] = frozenset()
    for statement in statements([node]):
        names |= statement.writes
    for inner in walk([node]):
        if isinstance(inner, Loop) and inner.variable:
            names |= {inner.variable}
    return names

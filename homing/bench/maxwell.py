"""The matrix of I-CG: edge elements for Maxwell's equations on an unstructured mesh around an aircraft.

    python -m homing.bench.maxwell --unknowns 20000 matrix.mtx

An implicit step in time of the curl-curl equation leads to (M + (c dt / 2)^2 K) e = b: M is the mass matrix,
K the curl-curl matrix of Nedelec's lowest elements, of which each edge of the mesh carries one. The paper
(Löf, Nordén, Holmgren 2004) has 1,794,058 unknowns and a density of 0.0009 %: 16 nonzeros a row, which is
what these elements have. Its mesh is not published; ours is of the same kind: a body with wings and a tail in
a sphere, fine at the body and coarse outside.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from homing.errors import UserError

PAPER_UNKNOWNS = 1_794_058
LEAST_UNKNOWNS = 5_000
ORDERS = ("natural", "rcm", "random")
#: c dt over the mesh size at the body: such that 47 iterations of conjugate gradients converge.
COURANT = 1.0
#: Unknowns are near h^-3 times this (h: mesh size at the body), for a first guess.
_UNKNOWNS_TIMES_H3 = 40.0
_NEAR = 0.03  #: how near the number of unknowns must come, as a fraction
_TRIES = 6
_COARSEST = 4.0  #: mesh size far away over mesh size at the body

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mesh:
    """points: (n, 3); tetrahedra: (m, 4), indices of points, both in the order in which gmsh has them."""

    points: Floats
    tetrahedra: Integers
    size: float

    @property
    def edges(self) -> int:
        """How many edges there are, those on the body and on the sphere included."""
        pairs = np.sort(self.tetrahedra[:, [0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3]].reshape(-1, 2), axis=1)
        return len(np.unique(pairs[:, 0] * len(self.points) + pairs[:, 1]))


def make_mesh(size: float) -> Mesh:
    """Mesh the space around the aircraft with edges of about `size` at the body (its length is 2.6)."""
    gmsh = _gmsh()
    # gmsh lifts the stack limit of the whole process, which everything started later would inherit.
    stack = resource.getrlimit(resource.RLIMIT_STACK)
    gmsh.initialize(interruptible=False)
    resource.setrlimit(resource.RLIMIT_STACK, stack)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        body = _geometry(gmsh)
        field = gmsh.model.mesh.field
        distance = field.add("Distance")
        field.setNumbers(distance, "SurfacesList", body)
        field.setNumber(distance, "Sampling", 40)
        threshold = field.add("Threshold")
        for name, value in {
            "InField": distance,
            "SizeMin": size,
            "SizeMax": _COARSEST * size,
            "DistMin": 0.1,
            "DistMax": 2.0,
        }.items():
            field.setNumber(threshold, name, value)
        field.setAsBackgroundMesh(threshold)
        for name in ("ExtendFromBoundary", "FromPoints", "FromCurvature"):
            gmsh.option.setNumber(f"Mesh.MeshSize{name}", 0)
        gmsh.model.mesh.generate(3)
        tags, coordinates, _ = gmsh.model.mesh.getNodes()
        _, _, corners = gmsh.model.mesh.getElements(3)
    finally:
        gmsh.finalize()
    order = np.argsort(tags)
    tetrahedra = np.searchsorted(tags[order], corners[0].reshape(-1, 4))
    # Points of no tetrahedron (the inside of the body has none) would leave empty rows.
    used, tetrahedra = np.unique(tetrahedra, return_inverse=True)
    points = np.asarray(coordinates, dtype=np.float64).reshape(-1, 3)[order][used]
    return Mesh(points, tetrahedra.reshape(-1, 4).astype(np.int64), size)


def _geometry(gmsh: Any) -> list[int]:
    """A sphere without an aircraft; the surfaces of the aircraft."""
    shape = gmsh.model.occ
    around = shape.addSphere(0, 0, 0, 3.0)
    fuselage = shape.addCylinder(-1.15, 0, 0, 2.15, 0, 0, 0.14)
    nose = shape.addCone(1.0, 0, 0, 0.45, 0, 0, 0.14, 0.02)

    def plate(outline: list[tuple[float, float]], thickness: float) -> list[tuple[int, int]]:
        points = [shape.addPoint(x, y, -thickness / 2) for x, y in outline]
        lines = [shape.addLine(points[i - 1], points[i]) for i in range(len(points))]
        face = shape.addPlaneSurface([shape.addCurveLoop(lines)])
        return [entity for entity in shape.extrude([(2, face)], 0, 0, thickness) if entity[0] == 3]

    wings = plate([(0.35, 0), (-0.45, 0.85), (-0.75, 0.85), (-0.7, 0), (-0.75, -0.85), (-0.45, -0.85)], 0.04)
    tail = plate([(-0.75, 0), (-1.05, 0.4), (-1.2, 0.4), (-1.0, 0), (-1.2, -0.4), (-1.05, -0.4)], 0.03)
    space, _ = shape.cut([(3, around)], [(3, fuselage), (3, nose), *wings, *tail])
    shape.synchronize()
    surfaces = [tag for _, tag in gmsh.model.getBoundary(space, oriented=False)]
    outermost = max(surfaces, key=lambda tag: float(shape.getMass(2, tag)))
    return [tag for tag in surfaces if tag != outermost]


def assemble(mesh: Mesh, courant: float = COURANT) -> Any:
    """The matrix M + (c dt / 2)^2 K without the edges on the body, a SciPy CSR matrix (unknowns, unknowns).

    The body conducts perfectly: the tangential field, so its edges, are zero. courant: c dt / mesh size.
    """
    import skfem
    from skfem.helpers import curl, dot

    grid = skfem.MeshTet(mesh.points.T.copy(), mesh.tetrahedra.T.copy())
    basis = skfem.Basis(grid, skfem.ElementTetN0(), intorder=2)
    factor = (courant * mesh.size / 2) ** 2

    def step(u: Any, v: Any, _: Any) -> Any:
        return dot(u, v) + factor * dot(curl(u), curl(v))

    matrix = skfem.BilinearForm(step).assemble(basis)
    near = np.linalg.norm(grid.p, axis=0) < 2.0
    facets = grid.boundary_facets()
    on_body = facets[near[grid.facets[:, facets]].all(axis=0)]
    zero = basis.get_dofs(facets=on_body).all()
    kept = np.setdiff1d(np.arange(matrix.shape[0]), zero)
    return matrix[kept][:, kept].tocsr()


def make_matrix(unknowns: int, tell: Any = None) -> Any:
    """A matrix with about `unknowns` rows. `tell` is called with a line about each step.

    The mesh size is found by trying: unknowns grow with h^-3, not quite.
    """
    if unknowns < LEAST_UNKNOWNS:
        raise UserError(f"--unknowns {unknowns}: the aircraft needs at least {LEAST_UNKNOWNS}")
    tell = tell or (lambda text: None)
    size = (_UNKNOWNS_TIMES_H3 / unknowns) ** (1 / 3)
    best: Mesh | None = None
    for _ in range(_TRIES):
        mesh = make_mesh(size)
        tell(f"mesh size {size:.4f}: {len(mesh.tetrahedra):,} tetrahedra, {mesh.edges:,} edges")
        if best is None or abs(mesh.edges - unknowns) < abs(best.edges - unknowns):
            best = mesh
        if abs(best.edges / unknowns - 1) < _NEAR:
            break
        size *= (mesh.edges / unknowns) ** (1 / 3)
    assert best is not None
    matrix = assemble(best)
    density = matrix.nnz / matrix.shape[0] ** 2
    tell(f"matrix: {matrix.shape[0]:,} rows, {matrix.nnz:,} nonzeros, density {density:.4%}")
    return matrix


def reordered(matrix: Any, order: str) -> Any:
    """The matrix with its unknowns numbered anew: "rcm" (reverse Cuthill-McKee: a small bandwidth), "random".

    gmsh numbers points surface by surface and then as its mesher inserts them, scikit-fem numbers edges by
    their points: the natural order.
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    if order == "natural":
        return matrix
    if order == "rcm":
        new = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    else:
        new = np.random.default_rng(1).permutation(matrix.shape[0])
    return matrix[new][:, new].tocsr()


def read_matrix(path: Path) -> Any:
    """A file of write_matrix again. UserError where that fails."""
    import scipy.io

    try:
        return scipy.io.mmread(path).tocsr()
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error


def write_matrix(matrix: Any, path: Path) -> None:
    """Write the lower triangle as a symmetric Matrix Market file. UserError where that fails."""
    import scipy.io
    import scipy.sparse

    part = path.with_name(path.name + ".part.mtx")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lower = scipy.sparse.tril(matrix.tocsc(), format="coo")
        scipy.io.mmwrite(part, lower, symmetry="symmetric", precision=17)
        os.replace(part, path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error


def _gmsh() -> Any:
    try:
        import gmsh
    except (ImportError, OSError) as error:
        raise UserError(f"the mesh of I-CG needs gmsh: {error} (pip install 'homing[bench]')") from error
    return gmsh


def main(words: list[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser("python -m homing.bench.maxwell", description=__doc__.split("\n")[0])
    wanted = f"about so many; the paper has {PAPER_UNKNOWNS}"
    parser.add_argument("--unknowns", type=int, default=20_000, help=wanted)
    parser.add_argument("--order", choices=ORDERS, default="natural", help="how unknowns are numbered")
    parser.add_argument("output", type=Path, help="the Matrix Market file to write")
    given = parser.parse_args(words)
    try:
        matrix = make_matrix(given.unknowns, lambda text: print(text, file=sys.stderr))
        write_matrix(reordered(matrix, given.order), given.output)
    except UserError as error:
        print(f"maxwell: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

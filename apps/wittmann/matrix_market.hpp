// Sparse matrices from Matrix Market files (R. Boisvert, R. Pozo, K. Remington: The Matrix Market Exchange
// Formats, NISTIR 5935, 1996): coordinate format, real, integer or pattern, general or symmetric.
#pragma once

#include <string>
#include <vector>

namespace wittmann {

struct Entry {
    long row = 0, column = 0; ///< from 0
    double value = 0;
};

struct Matrix {
    long rows = 0;
    std::vector<Entry> entries; ///< by row, then column; both triangles of a symmetric matrix
};

/// std::runtime_error "FILE:LINE: what is wrong" for a file that is none, or whose matrix is not square and
/// symmetric.
Matrix read_matrix_market(const std::string& path);

/// The five-point Laplace operator on side x side points: eigenvalues 4 - 2 cos(p pi h) - 2 cos(q pi h), h =
/// 1 / (side + 1).
Matrix laplace(long side);

} // namespace wittmann

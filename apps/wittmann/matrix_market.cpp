#include "matrix_market.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace wittmann {
namespace {

void sort(std::vector<Entry>& entries) {
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.row != b.row ? a.row < b.row : a.column < b.column;
    });
}

/// A Lanczos recurrence needs a symmetric matrix. Empty: it is one.
std::string asymmetry(const Matrix& matrix) {
    std::vector<Entry> transposed = matrix.entries;
    for (Entry& entry : transposed)
        std::swap(entry.row, entry.column);
    sort(transposed);
    for (std::size_t n = 0; n < transposed.size(); ++n) {
        const Entry &a = matrix.entries[n], &b = transposed[n];
        if (a.row != b.row || a.column != b.column || a.value != b.value)
            return "is not symmetric (entry " + std::to_string(a.row + 1) + ", " +
                   std::to_string(a.column + 1) + ")";
    }
    return {};
}

} // namespace

Matrix read_matrix_market(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + ": cannot be read");
    long number = 0;
    std::string line;
    const auto wrong = [&](const std::string& what) -> std::runtime_error {
        return std::runtime_error(path + ":" + std::to_string(number) + ": " + what);
    };
    const auto next = [&](bool comments) {
        while (std::getline(file, line)) {
            ++number;
            if (!comments) return true;
            if (line.find_first_not_of(" \t\r") != std::string::npos && line[0] != '%') return true;
        }
        return false;
    };
    if (!next(false)) throw wrong("the file is empty");
    std::transform(line.begin(), line.end(), line.begin(), [](unsigned char c) { return std::tolower(c); });
    std::string banner, object, format, field, symmetry;
    std::istringstream(line) >> banner >> object >> format >> field >> symmetry;
    if (banner != "%%matrixmarket" || object != "matrix") throw wrong("no line '%%MatrixMarket matrix ...'");
    if (format != "coordinate") throw wrong("format '" + format + "': only coordinate (sparse) matrices");
    if (field != "real" && field != "integer" && field != "pattern")
        throw wrong("field '" + field + "': only real, integer and pattern");
    if (symmetry != "general" && symmetry != "symmetric")
        throw wrong("symmetry '" + symmetry + "': only general and symmetric");

    Matrix matrix;
    long columns = 0, count = 0;
    if (!next(true) || !(std::istringstream(line) >> matrix.rows >> columns >> count) || matrix.rows < 1 ||
        count < 0)
        throw wrong("no line with rows, columns and entries");
    if (matrix.rows != columns) throw wrong("the matrix is not square");
    for (long n = 0; n < count; ++n) {
        Entry entry;
        entry.value = 1;
        if (!next(true))
            throw wrong("ends after " + std::to_string(n) + " of " + std::to_string(count) + " entries");
        std::istringstream words(line);
        words >> entry.row >> entry.column;
        if (field != "pattern") words >> entry.value;
        if (!words) throw wrong("not an entry: '" + line + "'");
        if (entry.row < 1 || entry.row > matrix.rows || entry.column < 1 || entry.column > matrix.rows)
            throw wrong("an entry outside of the matrix: '" + line + "'");
        --entry.row;
        --entry.column;
        matrix.entries.push_back(entry);
        if (symmetry == "symmetric" && entry.row != entry.column)
            matrix.entries.push_back({entry.column, entry.row, entry.value});
    }
    sort(matrix.entries);
    if (const std::string why = asymmetry(matrix); !why.empty()) throw wrong("the matrix " + why);
    return matrix;
}

Matrix laplace(long side) {
    Matrix matrix;
    matrix.rows = side * side;
    for (long y = 0; y < side; ++y)
        for (long x = 0; x < side; ++x) {
            const long row = y * side + x;
            if (y > 0) matrix.entries.push_back({row, row - side, -1});
            if (x > 0) matrix.entries.push_back({row, row - 1, -1});
            matrix.entries.push_back({row, row, 4});
            if (x + 1 < side) matrix.entries.push_back({row, row + 1, -1});
            if (y + 1 < side) matrix.entries.push_back({row, row + side, -1});
        }
    return matrix;
}

} // namespace wittmann
